"""Runs as tables to print: final figures with intervals over seeds, and what a target cost."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from fedwave.intervals import interval, median_interval
from fedwave.metric import Metric
from fedwave.runs.batteries import HOUR_S, BatteryHistory, battery_history
from fedwave.runs.compare import FinishedRun, common_metric, group_by_name
from fedwave.runs.comparison import compare_runs
from fedwave.runs.text_table import Best, TextTable


def final_table(runs: Sequence[FinishedRun], *, baseline: str | None = None) -> Table:
    """Return one row per setting, with 95 % confidence intervals where there are several seeds.

    Seconds and joules have heavy tails: medians between order statistics, where the others are means ±.
    Beside each stands the difference or ratio to the baseline, by default the first, on the same seeds.
    """
    return rich_table(compare_runs(runs, baseline=baseline).final)


def cost_table(
    runs: Sequence[FinishedRun], *, target: float | None = None, baseline: str | None = None
) -> Table:
    """Return what each setting paid for the target metric: rounds, and over a cell seconds and joules.

    These are medians with their intervals; rounds are a mean.
    """
    return rich_table(compare_runs(runs, baseline=baseline, target=target).costs)


def rich_table(table: TextTable) -> Table:
    """Return a table to print; the best of a column is bold."""
    found = text_table(*table.header)
    for row in table.rows:
        found.add_row(*(Text(cell, style="bold" if isinstance(cell, Best) else "") for cell in row))
    return found


def lifetime_table(runs: Sequence[FinishedRun]) -> Table | None:
    """Return when devices had no charge, one row per setting; None where nobody lives on a battery.

    Hours and accuracies are medians of the seeds in which it came to that.
    """
    metric = common_metric(runs)
    histories = {run.path: battery_history(run) for run in runs}
    groups = {
        name: [own for run in group if (own := histories[run.path]) is not None]
        for name, group in group_by_name(runs).items()
    }
    if not any(groups.values()):
        return None
    judged = metric.name.replace("_", " ")
    deaths = ("first dead, h", f"{judged} then", "half dead, h", f"{judged} then")
    counts = ("most dead", "dead at the end", "device-hours dead", "uploads lost")
    table = text_table("run", *deaths, *counts)
    for name, group in groups.items():
        if group:
            cells = (cell for what in ("first_dead", "half_dead") for cell in _death(group, what, metric))
            table.add_row(Text(name), *cells, *_counts(group))
    return table


def _death(group: Sequence[BatteryHistory], what: str, metric: Metric) -> tuple[str, str]:
    """Return when it came to that and how good the model was then: in how many seeds, if not in all."""
    found = [own.lifetimes[what] for own in group if own.lifetimes[what] is not None]
    if not found:
        return "never", ""
    scale, unit = (100.0, " %") if metric.is_share else (1.0, "")
    seeds = "" if len(found) == len(group) else f" in {len(found)} of {len(group)}"
    judged = [scale * one[f"heldout_{metric.name}"] for one in found if f"heldout_{metric.name}" in one]
    hours = median_interval([one["clock_s"] / HOUR_S for one in found])
    return f"{hours}{seeds}", f"{median_interval(judged)}{unit}" if judged else "-"


def _counts(group: Sequence[BatteryHistory]) -> list[str]:
    names = ("most_dead", "dead_at_the_end", "uploads_lost_to_flat_batteries")
    most, last, lost = ([float(own.lifetimes[name]) for own in group] for name in names)
    return [str(interval(values)) for values in (most, last, [own.dead_device_hours for own in group], lost)]


def text_table(*headings: str) -> Table:
    """Return an empty table with these headings; what names a row stands left, numbers right."""
    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 2, 0, 0))
    for heading in headings:
        table.add_column(
            heading,
            no_wrap=True,
            justify="left"
            if heading in ("run", "folder", "dataset", "before round", "method", "status", "term")
            else "right",
        )
    return table
