"""What the weight of energy does by the scale of u, as a chart beside the paper's times."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fedwave.plots.chart import Chart, ChartPanel, Series
from fedwave.plots.style import COLOURS
from fedwave.reproduce.cell_claims import TIMES_OF_FIGURE_7
from fedwave.reproduce.panels import SYMBOLS, Found, distinct, transformed_series
from fedwave.reproduce.seed_tables import Row, paired


def by_scale(found: Found, rows: Sequence[Row]) -> Chart:
    """What a larger weight of energy does to energy and time, for every scale of u and every D_i."""
    del found
    looks = [
        row | dict(zip(("scale", "samples"), _scale_and_samples(row["scheme"]), strict=True)) for row in rows
    ]
    colours = dict(zip(distinct(looks, "scale"), COLOURS, strict=False))
    panels = []
    for samples in distinct(looks, "samples"):
        here = [row for row in looks if row["samples"] == samples]
        for column, label in (("energy_j", "energy"), ("delay_s", "time")):
            series = [_to_first(scale, here, column, colour) for scale, colour in colours.items()]
            if column == "delay_s":
                ratio = (1.0, TIMES_OF_FIGURE_7[1] / TIMES_OF_FIGURE_7[0])
                ends = (min(distinct(here, "value")), max(distinct(here, "value")))
                series.append(
                    Series(
                        "the paper, 18.63 → 21.53",
                        ends,
                        ratio,
                        ratio,
                        ratio,
                        colour="#777777",
                        is_dashed=True,
                    )
                )
            panels.append(
                ChartPanel(
                    samples,
                    SYMBOLS["energy_weight"],
                    f"{label} by that at the smallest η₁",
                    tuple(one for one in series if one is not None),
                    has_log_y=column == "energy_j",
                    mark_y=1.0,
                )
            )
    caption = (
        "URAL (optimal) by the scale of u and by the samples that Eq. (23) counts: energy and time of a "
        "round as multiples of those at the smallest η₁ on the same seeds, geometric means with 95 % "
        "intervals. Where u is small, joules outweigh all contributions, and nobody uploads."
    )
    return Chart("scales", "What η₁ does, by the scale of u", caption, tuple(panels), 2)


def _scale_and_samples(scheme: str) -> tuple[str, str]:
    """Return what a scheme of the item ``scales`` says of u, and of D_i."""
    _, scale, *samples = scheme.split(", ")
    return scale, f"Eq. (23) counts {samples[0].partition('= ')[2]} samples" if samples else "all samples"


def _to_first(scale: str, rows: Sequence[Row], column: str, colour: str) -> Series | None:
    """Return a figure against the weight, as a multiple of that at the first one on the same seeds."""
    weights = sorted(distinct(rows, "value"))
    by_weight = [
        {row["seed"]: row[column] for row in rows if row["scale"] == scale and row["value"] == weight}
        for weight in weights
    ]
    values = [np.array(own) / own[0] for own in paired(*by_weight).values() if min(own) > 0.0]
    if not values:
        return None
    return transformed_series(scale, weights, np.array(values), np.log, np.exp, colour=colour)
