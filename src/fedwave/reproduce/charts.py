"""Which charts each item has."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from fedwave.plots.chart import Chart, merged
from fedwave.reproduce.cell_charts import (
    against_costs,
    figure_4,
    figure_5,
    figure_6,
    figure_7,
    optimum_and_ives,
)
from fedwave.reproduce.learning_charts import figure_2, figure_2_lead, figure_3, gradients, turning_point
from fedwave.reproduce.panels import Found
from fedwave.reproduce.seed_tables import Row
from fedwave.reproduce.study_charts import (
    accuracy_by_first_weights,
    accuracy_by_rate,
    by_scale,
    faults,
    lead_by_rate,
    step_arms,
    step_leads,
    step_lengths,
)

CHARTS: Mapping[str, Sequence[Callable[[Found, Sequence[Row]], Chart]]] = {
    "fig-2": (figure_2, figure_2_lead),
    "fig-3": (figure_3,),
    "fig-4": (figure_4, against_costs),
    "fig-5": (
        figure_5,
        optimum_and_ives("fig-5", "num_blocks", "URAL by the optimum and by IVES, by blocks"),
    ),
    "fig-6": (figure_6, optimum_and_ives("fig-6", "max_gain", "URAL by the optimum and by IVES, by gain")),
    "fig-7": (figure_7, optimum_and_ives("fig-7", "energy_weight", "URAL by the optimum and by IVES, by η₁")),
    "readings": (accuracy_by_first_weights,),
    "beyond": (gradients, turning_point),
    "steps": (step_leads, step_arms, step_lengths),
    "rates": (accuracy_by_rate, lead_by_rate),
    "robust": (faults,),
    "scales": (by_scale,),
}


def charts_of(item: str, found: Found, rows: Sequence[Row]) -> list[Chart]:
    """Return the charts of an item; none where nothing was run."""
    if not rows:
        return []
    charts = [make(found, rows) for make in CHARTS.get(item, ())]
    return [merged(chart) for chart in charts if chart.panels]
