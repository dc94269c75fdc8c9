"""What an accuracy cost: the way there, and the seconds and joules that each setting paid for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fedwave.errors import RunError
from fedwave.intervals import median_interval
from fedwave.plots.chart import ChartPanel, looks_of
from fedwave.plots.draw_chart import draw_lines, label_of
from fedwave.plots.runs import run_series
from fedwave.plots.style import Picture, new_figure, plain
from fedwave.runs.compare import (
    CostName,
    FinishedRun,
    common_metric,
    common_target,
    group_by_name,
    paired_ratio,
)


def plot_costs(
    runs: Sequence[FinishedRun], path: Path | str, *, target: float | None = None, title: str = ""
) -> Path:
    """Draw what the target metric cost over a cell to a file; runs of one name are taken together."""
    return draw_costs(runs, target=target, title=title).save(path)


def draw_costs(runs: Sequence[FinishedRun], *, target: float | None = None, title: str = "") -> Picture:
    """Return the metric by rounds, beside bars of the seconds and joules until the target is reached.

    A dot is a seed, a bar the median of those that reach the target with its 95 % interval. "2 ×" is how many
    times as much as the first setting, on the same seeds. By default the target is the best that all reach.
    """
    metric = common_metric(runs)
    if not all(run.has_cell for run in runs):
        raise RunError(
            "seconds and joules are counted over a cell only, got a run without one. Leave it out."
        )
    wanted = common_target(runs) if target is None else target
    groups = group_by_name(runs)
    figure, (left, middle, right) = new_figure(3, width=3.7, height=max(3.0, 0.75 * len(groups)))
    if title:
        figure.suptitle(title.replace("$", r"\$"), fontsize=11, weight="bold")
    scale, unit = (100.0, " [%]") if metric.is_share else (1.0, "")
    curves = ChartPanel("", "", "", run_series(runs, "round", f"heldout_{metric.name}", scale=scale))
    lines = draw_lines(left, curves)
    left.axhline(scale * wanted, color="#000000", linewidth=0.8, linestyle=":")
    left.set_xlabel("rounds")
    left.set_ylabel(f"held-out {metric.name.replace('_', ' ')}{unit}")
    left.legend(
        list(lines.values()),
        [label_of(one) for one in curves.series],
        frameon=False,
        fontsize=7.5,
        loc="lower right" if metric.higher_is_better else "upper right",
    )
    shown = f"{wanted:.0%}" if metric.is_share else f"{wanted:.3g}"
    cells = [run.experiment.cell for run in runs]
    is_normalised = all(cell is not None and cell.normalised for cell in cells)
    _draw_bars(middle, groups, "delay_s", wanted)
    middle.set_xlabel("normalised time" if is_normalised else "seconds")
    middle.set_title(f"time until {shown}", fontsize=9)
    _draw_bars(right, groups, "energy_j", wanted)
    right.set_xlabel("normalised energy" if is_normalised else "joules of all devices")
    right.set_title(f"energy until {shown}", fontsize=9)
    right.set_yticklabels([])
    return Picture(figure)


def _draw_bars(axis: Any, groups: Mapping[str, Sequence[FinishedRun]], cost: CostName, target: float) -> None:
    first = next(iter(groups.values()))
    looks = looks_of(list(groups))
    for row, (name, group) in enumerate(groups.items()):
        colour = looks[name]["colour"]
        paid = [run.cost_of_reaching(target) for run in group]
        values = [float(getattr(one, cost)) for one in paid if one is not None]
        label = f"not reached by {len(group)} seeds"
        if values:
            found = median_interval(values)
            axis.barh(row, found.median, color=colour, alpha=0.35, height=0.5)
            spread = ([found.median - found.low], [found.high - found.median])
            axis.errorbar(
                found.median,
                row,
                xerr=spread if found.count > 1 else None,
                color=colour,
                capsize=3,
                linewidth=1.4,
            )
            axis.plot(values, [row] * len(values), "o", color=colour, markersize=3, alpha=0.7)
            label = str(found)
            if row:
                label += f"   {paired_ratio(group, first, cost, target=target)}"
            if len(values) < len(paid):
                label += f"   {len(values)} of {len(paid)} seeds"
        axis.annotate(
            label, (0.01, row - 0.28), xycoords=("axes fraction", "data"), fontsize=7.5, va="bottom"
        )
    axis.set_yticks(range(len(groups)), [plain(name) for name in groups])
    axis.set_ylim(len(groups) - 0.6, -0.75)
    axis.set_xlim(left=0.0)
    axis.grid(axis="y", visible=False)
