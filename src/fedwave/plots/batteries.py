"""Batteries over a run as a chart: charges of devices, how many have none, and the price of a joule."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from fedwave.errors import RunError
from fedwave.plots.chart import Chart, ChartPanel, Series, looks_of, series_of_runs
from fedwave.plots.draw_chart import MANY, draw_chart
from fedwave.plots.style import Picture
from fedwave.runs.batteries import (
    HOUR_S,
    BatteryHistory,
    DeviceHistory,
    battery_history,
    device_history,
)
from fedwave.runs.compare import FinishedRun, common_metric, group_by_name
from fedwave.units import FloatArray

LOWEST = 0.1  # of the devices: those near their end
CAPTION = (
    "Charges of devices when the next round begins: the median device, and the one that a tenth of them are "
    "below. A device without charge for a round takes no part in it."
)


def plot_batteries(runs: Sequence[FinishedRun], path: Path | str, *, title: str = "") -> Path:
    """Draw metric, charges and deaths of runs on batteries to a file, against hours."""
    return draw_batteries(runs, title=title).save(path)


def draw_batteries(runs: Sequence[FinishedRun], *, title: str = "") -> Picture:
    """Return the held-out metric, the median and the lowest charge, and the dead devices, against hours."""
    metric = common_metric(runs)
    panels = battery_panels(runs)
    if not panels:
        raise RunError(
            "there are no batteries to draw, got runs without them. Give runs with [cell.battery]."
        )
    scale, unit = (100.0, " [%]") if metric.is_share else (1.0, "")
    learnt = _series(runs, lambda run: (run.curve("clock_s") / HOUR_S, scale * run.heldout_metric))
    label = f"held-out {metric.name.replace('_', ' ')}{unit}"
    shown = [ChartPanel("", panels[0].x_label, label, learnt), *panels[:3]]
    if len(learnt) > MANY:  # seeds of so many would cover each other
        shown = [
            replace(panel, series=tuple(replace(one, runs=()) for one in panel.series)) for panel in shown
        ]
    return draw_chart(Chart("batteries", "Batteries", CAPTION, tuple(shown), 2), title=title)


def battery_panels(runs: Sequence[FinishedRun]) -> tuple[ChartPanel, ...]:
    """Return charges, deaths and the planners' own columns against hours; nothing without batteries."""
    tables = {run.path: device_history(run) for run in runs}
    found = {run.path: battery_history(run, tables[run.path]) for run in runs}
    lived = [run for run in runs if found[run.path] is not None]
    if not lived:
        return ()

    def over_time(values: Callable[[BatteryHistory, DeviceHistory], FloatArray | None]) -> tuple[Series, ...]:
        def curve(run: FinishedRun) -> tuple[FloatArray, FloatArray] | None:
            own, table = found[run.path], tables[run.path]
            assert own is not None
            assert table is not None
            y = values(own, table)
            return None if y is None else (own.clock_s / HOUR_S, y)

        return _series(lived, curve)

    x_label = "hours since the run began"
    panels = [
        ChartPanel(
            "", x_label, "charge of the median device [J]", over_time(lambda own, _: own.quantile_j(0.5))
        ),
        ChartPanel(
            "",
            x_label,
            f"charge of the lowest {LOWEST:.0%} [J]",
            over_time(lambda own, _: own.quantile_j(LOWEST)),
        ),
        ChartPanel("", x_label, "devices without charge", over_time(lambda own, _: own.num_dead)),
    ]
    names = dict.fromkeys(name for run in lived for name in (tables[run.path] or _NOTHING).own)
    for name in names:
        medians = over_time(lambda _, table, name=name: _median(table.own.get(name)))  # type: ignore[misc]
        panels.append(ChartPanel("", x_label, f"planner's {name.replace('_', ' ')}, median", medians))
    return tuple(panels)


_NOTHING = DeviceHistory(Path(), 1, {})


def _median(values: FloatArray | None) -> FloatArray | None:
    """Return the median device's value in each round; NaN where nobody has one."""
    if values is None:
        return None
    return np.array([np.nanmedian(row) if np.isfinite(row).any() else np.nan for row in values])


def _series(
    runs: Sequence[FinishedRun], curve: Callable[[FinishedRun], tuple[FloatArray, FloatArray] | None]
) -> tuple[Series, ...]:
    """Return a series for each name, averaged over its seeds; none for names without a curve."""
    groups = group_by_name(runs)
    looks = looks_of(list(groups))
    found = []
    for name, group in groups.items():
        curves = [one for run in group if (one := curve(run)) is not None]
        series = series_of_runs(name, curves, **looks[name]) if curves else None
        found += [] if series is None else [series]
    return tuple(found)
