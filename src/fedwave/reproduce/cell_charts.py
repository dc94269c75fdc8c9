"""Figures 4 to 7 as charts: the same axes, curves and panels, with intervals over seeds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from fedwave.plots.chart import Chart
from fedwave.reproduce.items import IVES, URAL, URAL_SCHEMES
from fedwave.reproduce.panels import (
    ENERGY,
    INTERVALS,
    LOSS_19,
    RATIOS,
    TIME,
    Found,
    bars_panel,
    curves_panel,
    spent_panel,
    varied_panel,
)
from fedwave.reproduce.seed_tables import Row


def figure_4(found: Found, rows: Sequence[Row]) -> Chart:
    """Loss by rounds, and the energy and time of a round, for all schemes."""
    panels = (
        curves_panel("convergence", found, reference=IVES),
        bars_panel("energy", rows, "energy_j", ENERGY),
        bars_panel("wall-clock time", rows, "delay_s", TIME, has_log=True),
    )
    caption = (
        "Solid: the paper's IVES and its way of counting, in which every device computes in every "
        "scheme. Dashed, hatched or hollow: only the drawn devices compute, and IVES stops where its fixed "
        "point is worth less than nobody "
        "uploading. “URAL (optimal)” solves each round's problem to a proven optimum. "
        f"{INTERVALS.format(IVES)} {RATIOS}"
    )
    return Chart("fig-4", "Figure 4: convergence, energy and time", caption, panels, 3)


def against_costs(found: Found, rows: Sequence[Row]) -> Chart:
    """Loss against joules and seconds spent, not only rounds."""
    del rows
    panels = (
        spent_panel("by energy", found, "energy_j", "energy so far [normalised]"),
        spent_panel("by time", found, "delay_s", "time so far [normalised]"),
    )
    caption = "The runs of Figure 4 against what they cost: means over seeds after each round."
    return Chart("fig-4-costs", "Loss against energy and time", caption, panels, 2)


def figure_5(found: Found, rows: Sequence[Row]) -> Chart:
    """The same against the number of blocks."""
    del found
    return _three("fig-5", "Figure 5: effect of resource blocks", rows, "num_blocks", has_log_x=True)


def figure_6(found: Found, rows: Sequence[Row]) -> Chart:
    """Energy and time against the largest gain; the loss does not depend on it."""
    del found
    chart = _three("fig-6", "Figure 6: effect of channel gains", rows, "max_gain")
    return replace(chart, panels=chart.panels[1:], num_columns=2)


def figure_7(found: Found, rows: Sequence[Row]) -> Chart:
    """Energy, time and loss against each of the two weights."""
    del found
    panels = []
    for parameter in ("energy_weight", "delay_weight"):
        here = [row for row in rows if row["parameter"] == parameter]
        for column, label in (("energy_j", ENERGY), ("delay_s", TIME), ("loss_19", LOSS_19)):
            panels.append(
                varied_panel(here, parameter, column, label, has_log_y=column != "loss_19", reference=IVES)
            )
    caption = (
        "URAL under other weights; the other weight is 1. With raw contributions, in the thousands on "
        "images, the "
        f"weights decide little; dashed green: contributions normalised to mean |u| = 1. "
        f"{INTERVALS.format(IVES)} {RATIOS}"
    )
    return Chart("fig-7", "Figure 7: effect of the weights η₁ and η₂", caption, tuple(panels), 3)


def optimum_and_ives(item: str, parameter: str, title: str) -> Callable[[Found, Sequence[Row]], Chart]:
    """Return what draws the objective, contribution and uploads of URAL by IVES and by the optimum."""

    def make(found: Found, rows: Sequence[Row]) -> Chart:
        del found
        schemes = [scheme for scheme, *_ in URAL_SCHEMES]
        here = [row for row in rows if row["scheme"] in schemes and row["parameter"] == parameter]
        best = {(row["seed"], row["value"]): row["objective"] for row in here if row["scheme"] == URAL}
        shares = [
            row | {"share": 100.0 * row["objective"] / best[row["seed"], row["value"]]}
            for row in here
            if best.get((row["seed"], row["value"]), 0.0) > 0
        ]
        panels = tuple(
            varied_panel(
                shares, parameter, column, label, has_log_x=parameter == "num_blocks", reference=URAL
            )
            for column, label in (
                ("share", "objective, % of the optimum's"),
                ("received", "uploads per round"),
            )
            if len({row[column] for row in shares}) > 1  # a constant says nothing
        )
        caption = (
            "What the certified optimum gains over IVES in problem (P), along the runs of the figure above, "
            f"seed by seed. {INTERVALS.format(URAL)}"
        )
        return Chart(f"{item}-objective", title, caption, panels, 2)

    return make


def _three(name: str, title: str, rows: Sequence[Row], parameter: str, *, has_log_x: bool = False) -> Chart:
    panels = (
        varied_panel(rows, parameter, "loss_19", LOSS_19, has_log_x=has_log_x, reference=IVES),
        varied_panel(
            rows, parameter, "energy_j", ENERGY, has_log_x=has_log_x, has_log_y=True, reference=IVES
        ),
        varied_panel(rows, parameter, "delay_s", TIME, has_log_x=has_log_x, has_log_y=True, reference=IVES),
    )
    caption = (
        "Solid: the paper's IVES and its way of counting; dashed: only the drawn "
        "devices compute, and IVES stops where its fixed point is worth less than nobody uploading. "
        f"{INTERVALS.format(IVES)} {RATIOS}"
    )
    return Chart(name, title, caption, panels, 3)
