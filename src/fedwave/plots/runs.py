"""Runs as a picture: loss and metric against rounds and, over a cell, against seconds and joules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from fedwave.errors import ConfigError, did_you_mean
from fedwave.plots.batteries import battery_panels
from fedwave.plots.chart import Chart, ChartPanel, Series, looks_of, series_of_runs
from fedwave.plots.draw_chart import draw_chart
from fedwave.plots.style import STYLES, WIDTHS_IN, Picture, require_picture_name
from fedwave.runs.compare import FinishedRun, common_metric, group_by_name, read_run
from fedwave.runs.comparison import compare_runs
from fedwave.runs.message import message_of

WIDE = 8.0  # costs that differ by more than this are drawn on a logarithmic axis
MANY_SEEDS = 5  # beyond them, seeds are drawn as a band
COLUMNS = {"rounds": "round", "seconds": "cumulative_delay_s", "joules": "cumulative_energy_j"}
PAID = {"rounds": "rounds_to_target", "seconds": "delay_s_to_target", "joules": "energy_j_to_target"}


def plot_runs(runs: Sequence[FinishedRun], path: Path | str, **look: Any) -> Path:
    """Draw the runs' curves to a file, with the options of ``draw_runs``: ``by``, ``metric``, ``width``, ....

    Runs of one name are averaged over their seeds.
    """
    require_picture_name(Path(path))
    return draw_runs(runs, **look).save(path)


def draw_runs(
    runs: Sequence[FinishedRun],
    *,
    by: str | None = None,
    metric: str | None = None,
    width: str | float | None = None,
    bands: bool | None = None,
    style: str = "screen",
    title: str | None = None,
    baseline: str | None = None,
) -> Picture:
    """Return the runs' curves as a picture that a notebook shows; ``plot_runs`` writes it to a file.

    ``by`` is the x-axis ("rounds", "seconds", "joules") and ``metric`` the y-axis ("accuracy", "loss"); by
    default all that were measured. ``style`` is "screen", "paper" or "slides", ``width`` that of a "column"
    or "page" of a paper, or in inches. ``bands`` draws 95 % intervals in place of single seeds, by default
    beyond five. ``title`` is by default what the picture says, and in a paper nothing; ``baseline`` is whom
    it speaks of.
    """
    looks = STYLES.get(style)
    if looks is None:
        raise ConfigError(f'there is no style "{style}". {did_you_mean(style, STYLES)}')
    judged = common_metric(runs).name
    if style == "slides":  # one message, one panel
        by = by or ("seconds" if all(run.has_cell for run in runs) else "rounds")
        metric = metric or judged
    chart = run_chart(runs, by=by, metric=metric)
    if by is None and metric is None and chart.num_columns * 2 == len(chart.panels):
        # Over a cell: a third row, where devices live on batteries.
        chart = replace(chart, panels=(*chart.panels, *battery_panels(runs)))
    if bands is None:
        bands = any(one.seeds > MANY_SEEDS for panel in chart.panels for one in panel.series)
    if bands:
        chart = _with_bands(chart)
    if title is None and looks.has_heading:
        title = _message(runs, by, metric, baseline) or _datasets(runs)
    note = _how_drawn(chart) if style != "paper" else ""
    return draw_chart(chart, title=title or None, note=note, style=looks, width_in=_inches(width))


def _inches(width: str | float | None) -> float | None:
    if width is None or (isinstance(width, int | float) and width > 0.0):
        return width
    if width not in WIDTHS_IN:
        raise ConfigError(f'width must be "column", "page" or inches above 0, got {width!r}. Choose one.')
    return WIDTHS_IN[width]


def _datasets(runs: Sequence[FinishedRun]) -> str:
    return ", ".join(sorted({run.experiment.data.dataset.kind for run in runs}))


def _message(runs: Sequence[FinishedRun], by: str | None, metric: str | None, baseline: str | None) -> str:
    """Return what the picture says of the baseline: of costs over a cell, else of the metric or loss."""
    over_cell = all(run.has_cell for run in runs)
    measure = "heldout_loss" if metric == "loss" else None
    if measure is None and (by in ("seconds", "joules") or (by is None and over_cell)):
        measure = PAID[by or "seconds"]
    return message_of(compare_runs(runs, baseline=baseline), measure)


def _with_bands(chart: Chart) -> Chart:
    """Return the chart with bands for single seeds, but where seeds share no range and so have no mean."""
    panels = (
        replace(panel, series=tuple(one if len(one.x) < 2 else replace(one, runs=()) for one in panel.series))
        for panel in chart.panels
    )
    return replace(chart, panels=tuple(panels))


def _how_drawn(chart: Chart) -> str:
    """Return how seeds were averaged, for the line below the picture; "" where there is one seed each."""
    series = [one for panel in chart.panels for one in panel.series]
    seeds = sorted({one.seeds for one in series if one.seeds > 1})
    if not seeds:
        return ""
    counts = f"{seeds[0]}" if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]}"
    has_bands = any(one.seeds > 1 and not one.runs for one in series)
    shown = "; ".join(
        [
            *(["bands: 95 % intervals"] if has_bands else []),
            *(["faint lines: single seeds"] if any(one.runs for one in series) else []),
        ]
    )
    return f"Lines: means of {counts} seeds at equal x, over the range that all of them have; {shown}."


def draw_folder(path: Path) -> Picture:
    """Return the curves of the run in a folder; ``.plot()`` of a run calls it."""
    return draw_runs([read_run(path)])


def run_chart(runs: Sequence[FinishedRun], *, by: str | None = None, metric: str | None = None) -> Chart:
    """Return the runs' curves as a chart: a series for each name, a panel for each pair of axes."""
    common_metric(runs)  # they are runs, of one task
    over_cell = all(run.has_cell for run in runs)
    x_axes = _x_axes(runs) if over_cell else {"rounds": ("round", "rounds")}
    if by is not None and by not in x_axes:
        known = "over a cell alone" if by in COLUMNS else f"never. {did_you_mean(by, COLUMNS)}"
        raise ConfigError(f'runs are drawn by "{by}" {known}. Take by="rounds".')
    y_axes = _y_axes(runs, has_training=not over_cell and len(group_by_name(runs)) == 1)
    if metric is not None and metric not in y_axes:
        raise ConfigError(f'no run was measured by "{metric}". {did_you_mean(metric, y_axes)}')
    panels = [
        _panel(runs, *x_axis, column, label, scale=scale)
        for y_name, (column, label, scale) in y_axes.items()
        for x_name, x_axis in x_axes.items()
        if by in (None, x_name) and metric in (None, y_name)
    ]
    caption = (
        "Means over seeds with their 95 % intervals, where there are several: at equal rounds, seconds or "
        "joules, over the range that all seeds have. A faint line is one seed."
    )
    return Chart("curves", "Curves", caption, tuple(panels), min(3, len(panels)))


def _x_axes(runs: Sequence[FinishedRun]) -> dict[str, tuple[str, str]]:
    cells = [run.experiment.cell for run in runs]
    is_normalised = all(cell is not None and cell.normalised for cell in cells)
    second, joule = ("normalised", "normalised") if is_normalised else ("s", "J")
    labels = ("rounds", f"time on the cell's clock [{second}]", f"energy of all devices [{joule}]")
    return {name: (column, label) for (name, column), label in zip(COLUMNS.items(), labels, strict=True)}


def _y_axes(runs: Sequence[FinishedRun], *, has_training: bool) -> dict[str, tuple[str, str, float]]:
    """Return column, label and scale of what is drawn.

    Training losses of several schemes are not comparable: some are after adaptation, some before.
    """
    metric = common_metric(runs)
    judged = f"held-out {metric.name.replace('_', ' ')}" + (" [%]" if metric.is_share else "")
    training = {"training loss": ("train_loss", "loss of the computing devices", 1.0)} if has_training else {}
    return {
        **training,
        "loss": ("heldout_loss", "held-out loss after adaptation", 1.0),
        metric.name: (f"heldout_{metric.name}", judged, 100.0 if metric.is_share else 1.0),
    }


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
