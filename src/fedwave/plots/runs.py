"""Runs as a picture: loss and metric against rounds and, over a cell, against seconds and joules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from fedwave.plots.batteries import battery_panels
from fedwave.plots.chart import Chart, ChartPanel, Series, looks_of, series_of_runs
from fedwave.plots.draw_chart import draw_chart
from fedwave.plots.style import Picture
from fedwave.runs.compare import FinishedRun, common_metric, group_by_name, read_run

WIDE = 8.0  # costs that differ by more than this are drawn on a logarithmic axis


def plot_runs(runs: Sequence[FinishedRun], path: Path | str) -> Path:
    """Draw the runs' curves to a file; runs of one name are averaged over their seeds."""
    return draw_runs(runs).save(path)


def draw_runs(runs: Sequence[FinishedRun]) -> Picture:
    """Return the runs' curves as a picture that a notebook shows; ``plot_runs`` writes it to a file."""
    chart = run_chart(runs)
    if chart.num_columns * 2 == len(
        chart.panels
    ):  # over a cell: a third row, where devices live on batteries
        chart = replace(chart, panels=(*chart.panels, *battery_panels(runs)))
    return draw_chart(chart, title=", ".join(sorted({run.experiment.data.dataset.kind for run in runs})))


def draw_folder(path: Path) -> Picture:
    """Return the curves of the run in a folder; ``.plot()`` of a run calls it."""
    return draw_runs([read_run(path)])


def run_chart(runs: Sequence[FinishedRun]) -> Chart:
    """Return the runs' curves as a chart: a series for each name, a panel for each pair of axes."""
    metric = common_metric(runs)
    loss, judged = "held-out loss after adaptation", f"held-out {metric.name.replace('_', ' ')}"
    judged += " [%]" if metric.is_share else ""
    measured, scale = f"heldout_{metric.name}", 100.0 if metric.is_share else 1.0
    if all(run.has_cell for run in runs):
        cells = [run.experiment.cell for run in runs]
        is_normalised = all(cell is not None and cell.normalised for cell in cells)
        second, joule = ("normalised", "normalised") if is_normalised else ("s", "J")
        axes = [
            ("round", "rounds"),
            ("cumulative_delay_s", f"time on the cell's clock [{second}]"),
            ("cumulative_energy_j", f"energy of all devices [{joule}]"),
        ]
        panels = [_panel(runs, *x_axis, "heldout_loss", loss) for x_axis in axes]
        panels += [_panel(runs, *x_axis, measured, judged, scale=scale) for x_axis in axes]
    else:
        panels = [
            _panel(runs, "round", "rounds", "train_loss", "loss of the computing devices"),
            _panel(runs, "round", "rounds", "heldout_loss", loss),
            _panel(runs, "round", "rounds", measured, judged, scale=scale),
        ]
    caption = "Means over seeds with their 95 % intervals, where there are several. A faint line is one seed."
    return Chart("curves", "Curves", caption, tuple(panels), 3)


def run_series(
    runs: Sequence[FinishedRun], x_name: str, y_name: str, *, scale: float = 1.0
) -> tuple[Series, ...]:
    """Return one column of the runs against another, a series for each name."""
    offset = 1 if x_name == "round" else 0  # a row holds what is true after its round
    found = []
    groups = group_by_name(runs)
    looks = looks_of(list(groups))
    for name, group in groups.items():
        curves = [(run.curve(x_name) + offset, scale * run.curve(y_name)) for run in group]
        found.append(series_of_runs(name, curves, **looks[name]))
    return tuple(series for series in found if series is not None)


def _panel(
    runs: Sequence[FinishedRun], x_name: str, x_label: str, y_name: str, y_label: str, *, scale: float = 1.0
) -> ChartPanel:
    ends = [run.curve(x_name)[-1] for run in runs]
    is_wide = x_name != "round" and max(ends) > WIDE * min(ends)
    series = run_series(runs, x_name, y_name, scale=scale)
    return ChartPanel("", x_label, y_label, series, has_log_x=bool(is_wide))
