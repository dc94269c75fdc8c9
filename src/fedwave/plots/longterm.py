"""The long term of a run as a picture: utility as a share of the bound against the worst overdraw."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from fedwave.longterm.comparison import THIS_RUN, Candidate, LongTermComparison
from fedwave.plots.style import COLOURS, Picture, new_figure

OWN = "#000000"  # the colour of the run itself


def plot_long_term(comparison: LongTermComparison, path: Path | str) -> Path:
    """Draw planners beside the bound to a file."""
    return draw_long_term(comparison).save(path)


def draw_long_term(comparison: LongTermComparison) -> Picture:
    """Return planners by utility and worst overdraw, beside the bound as its prices were improved.

    Only what is left of the line at 0 keeps every device's budget; there nothing is above the bound.
    """
    figure, (left, right) = new_figure(2, width=5.2, height=3.8)
    has_shares = comparison.bound.value > 0.0
    others = [colour for colour in COLOURS if colour != OWN]
    by_name: dict[str, list[Candidate]] = {}
    for one in comparison.candidates:
        by_name.setdefault(one.name, []).append(one)
    for index, (name, group) in enumerate(by_name.items()):
        is_own = name.startswith(THIS_RUN)
        colour = OWN if is_own else others[index % len(others)]
        x = [100.0 * one.overdraw_j / comparison.budget_j for one in group]
        y = [100.0 * comparison.share(one) if has_shares else one.replay.mean_utility for one in group]
        left.plot(x, y, "*" if is_own else "o-", color=colour, markersize=11 if is_own else 5, label=name)
        for one, at_x, at_y in zip(group, x, y, strict=True):
            if one.v is not None:
                left.annotate(
                    f"V {one.v:g}", (at_x, at_y), xytext=(4, 4), textcoords="offset points", fontsize=7
                )
    left.axhline(
        100.0 if has_shares else comparison.bound.value, color="#000000", linewidth=0.8, linestyle=":"
    )
    left.axvline(0.0, color="#000000", linewidth=0.8, linestyle=":")
    left.set_xlabel("overdraw of the thirstiest device [% of its budget]")
    left.set_ylabel("utility [% of the bound]" if has_shares else "utility of a round")
    left.margins(0.12)
    left.legend(fontsize=7, loc="best")
    _draw_bound(right, comparison)
    size = f"{comparison.num_rounds} rounds, {comparison.num_devices} devices"
    figure.suptitle(f"{size}, {comparison.budget_j:.3g} J a round for each", fontsize=10)
    return Picture(figure)


def _draw_bound(axis: Any, comparison: LongTermComparison) -> None:
    values = comparison.bound.values
    steps = np.arange(1, len(values) + 1)
    axis.plot(steps, values, color="#999999", linewidth=1.0, label="g(λ) of a step")
    axis.plot(steps, np.minimum.accumulate(values), color=COLOURS[2], label="the least so far: the bound")
    best = max(
        (one.replay.mean_utility for one in comparison.candidates if one.overdraw_j <= 0.0), default=math.nan
    )
    if math.isfinite(best):
        axis.axhline(
            best, color=COLOURS[0], linewidth=1.0, linestyle="--", label="best that keeps the budget"
        )
    axis.set_xlabel("steps of the prices")
    axis.set_ylabel("utility of a round")
    axis.legend(fontsize=7)
