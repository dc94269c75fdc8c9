"""Runs as tables to print: final figures with intervals over seeds, and what a target cost."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from fedwave.errors import ConfigError
from fedwave.intervals import interval, median_interval
from fedwave.metric import Metric
from fedwave.runs.batteries import HOUR_S, BatteryHistory, battery_history
from fedwave.runs.compare import FinishedRun, common_metric, common_target, group_by_name


def final_table(runs: Sequence[FinishedRun]) -> Table:
    """Return one row per setting, with 95 % confidence intervals where there are several seeds.

    Seconds and joules have heavy tails: medians between order statistics, where the others are means ±.
    """
    metric = common_metric(runs)
    over_cell, has_carbon = any(run.has_cell for run in runs), _has_carbon(runs)
    scale, unit = (100.0, " %") if metric.is_share else (1.0, "")
    table = text_table(
        "run",
        "dataset",
        "seeds",
        "rounds",
        "held-out loss",
        f"held-out {metric.name.replace('_', ' ')}",
        *(("uploads", "seconds", "joules") if over_cell else ("train loss",)),
        *(("gCO2",) if has_carbon else ()),
        "wall time",
    )
    for name, group in group_by_name(runs).items():
        reached = interval([scale * run.last(f"heldout_{metric.name}") for run in group])
        cells = (
            [
                str(interval([float(run.curve("num_received").sum()) for run in group])),
                str(median_interval([run.last("cumulative_delay_s") for run in group])),
                str(median_interval([run.last("cumulative_energy_j") for run in group])),
            ]
            if over_cell
            else [str(interval([run.last("train_loss") for run in group]))]
        )
        if has_carbon:
            cells.append(
                str(median_interval([run.carbon_g(run.last("cumulative_energy_j")) for run in group]))
            )
        table.add_row(
            Text(name),
            Text(group[0].experiment.data.dataset.kind),
            str(len(group)),
            "/".join(sorted({str(run.num_rounds) for run in group})),
            str(interval([run.last("heldout_loss") for run in group])),
            f"{reached}{unit}" if reached.count else "-",
            *cells,
            f"{interval([float(run.curve('wall_time_s').sum()) for run in group]).mean:.1f} s",
        )
    return table


def cost_table(runs: Sequence[FinishedRun], *, target: float | None = None) -> Table:
    """Return what each setting paid for the target metric: rounds, and over a cell seconds and joules.

    These are medians with their intervals; rounds are a mean.
    """
    metric = common_metric(runs)
    wanted = common_target(runs) if target is None else _checked_target(target, metric)
    shown = f"{wanted:.0%}" if metric.is_share else f"{wanted:.3g}"
    carbon = ("gCO2",) if _has_carbon(runs) else ()
    table = text_table("run", f"rounds to {shown}", "seconds", "joules", *carbon, "reached by")
    for name, group in group_by_name(runs).items():
        paid = [(run, cost) for run in group if (cost := run.cost_of_reaching(wanted)) is not None]
        costs = [cost for _, cost in paid]
        table.add_row(
            Text(name),
            str(interval([float(cost.rounds) for cost in costs])),
            str(median_interval([cost.delay_s for cost in costs])),
            str(median_interval([cost.energy_j for cost in costs])),
            *([str(median_interval([run.carbon_g(cost.energy_j) for run, cost in paid]))] if carbon else []),
            f"{len(costs)} of {len(group)} seed{'s' if len(group) > 1 else ''}",
        )
    return table


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


def _has_carbon(runs: Sequence[FinishedRun]) -> bool:
    return any(run.carbon_intensity_g_per_kwh is not None for run in runs)


def _checked_target(target: float, metric: Metric) -> float:
    if metric.is_share and not 0.0 <= target <= 1.0:
        meant = f"Did you mean {target / 100.0:g}?" if 1.0 < target <= 100.0 else "Give a share, e.g. 0.6."
        raise ConfigError(f"the target {metric.name} must lie in 0 to 1, got {target:g}. {meant}")
    if not math.isfinite(target):
        raise ConfigError(f"the target {metric.name} must be a number, got {target:g}. Give a finite one.")
    return target


def text_table(*headings: str) -> Table:
    """Return an empty table with these headings; what names a row stands left, numbers right."""
    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 2, 0, 0))
    for heading in headings:
        table.add_column(
            heading,
            no_wrap=True,
            justify="left" if heading in ("run", "dataset", "before round") else "right",
        )
    return table
