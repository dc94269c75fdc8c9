"""A chart as a picture."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from fedwave.plots.chart import Chart, ChartPanel, Series
from fedwave.plots.style import new_figure, plain, save_figure, set_log_scale

MANY = 4  # series whose intervals would cover each other
MAX_MARKED = 12  # points of a curve that each get a dot
LABEL_SHARE = 0.06  # of an axis that a label takes


def draw_chart(chart: Chart, path: Path) -> Path:
    """Write a chart as a picture with one legend below the panels."""
    columns = min(chart.num_columns, len(chart.panels))
    rows = -(-len(chart.panels) // columns)
    names = chart.names if any(panel.kind == "line" for panel in chart.panels) else []
    names = names if len(names) > 1 else []
    in_a_row = max(1, int(columns * 50 / (max(map(len, names), default=0) + 9)))
    legend_height = 0.22 * -(-len(names) // in_a_row)
    figure, axes = new_figure(columns, width=3.5, height=2.75 + legend_height / rows, num_rows=rows)
    handles: dict[str, Any] = {}
    for axis, panel in zip(axes, chart.panels, strict=False):
        (_bars if panel.kind == "bars" else _lines)(axis, panel, handles)
        axis.set_title(plain(panel.title), fontsize=9)
        axis.set_xlabel(panel.x_label, fontsize=8.5)
        axis.set_ylabel(panel.y_label, fontsize=8.5)
        axis.tick_params(labelsize=8)
    for axis in axes[len(chart.panels) :]:
        axis.set_visible(False)
    if names:
        shown = [handles[name] for name in names if name in handles]
        figure.legend(
            shown,
            names,
            loc="outside lower center",
            ncols=min(len(names), in_a_row),
            fontsize=8,
            frameon=False,
            handlelength=3.2,  # shows that a dashed line is one, also under its marker
        )
    return save_figure(figure, path)


def _lines(axis: Any, panel: ChartPanel, handles: dict[str, Any]) -> None:
    alpha = 0.07 if len(panel.series) > MANY else 0.13
    for series in panel.series:
        marker = "o" if len(series.x) <= MAX_MARKED else None
        (line,) = axis.plot(
            series.x,
            series.mean,
            color=series.colour,
            linestyle="--" if series.is_dashed else "-",
            marker=marker,
            markersize=3.5,
            linewidth=1.5,
        )
        if series.low != series.high:
            axis.fill_between(series.x, *_band(series, panel), color=series.colour, alpha=alpha, linewidth=0)
        handles[series.name] = line
    if panel.y_range is not None:
        axis.set_ylim(*panel.y_range)
    if panel.has_log_x:
        ticks = sorted({x for series in panel.series for x in series.x})
        set_log_scale(axis.xaxis, *_range(ticks))
        if len(ticks) <= MAX_MARKED:
            axis.set_xticks(ticks, _labels(ticks), minor=False)
            axis.minorticks_off()
    if panel.has_log_y:
        set_log_scale(axis.yaxis, *_range([y for series in panel.series for y in series.mean]))
    if panel.mark_x is not None:
        axis.axvline(panel.mark_x, color="#888888", linewidth=0.8, linestyle=":")


def _band(series: Series, panel: ChartPanel) -> tuple[np.ndarray, np.ndarray]:
    """Return the interval; on a logarithmic axis it ends above zero."""
    low, high = np.array(series.low), np.array(series.high)
    if panel.has_log_y:
        low = np.maximum(low, 0.05 * np.array(series.mean))
    return low, high


def _bars(axis: Any, panel: ChartPanel, handles: dict[str, Any]) -> None:
    """Draw one bar for each series, named on the axis: the legend need not be looked up."""
    place = np.arange(len(panel.series))
    for at, series in zip(place, panel.series, strict=True):
        error = np.array([[series.mean[0] - _band(series, panel)[0][0]], [series.high[0] - series.mean[0]]])
        bar = axis.barh(
            at,
            series.mean[0],
            xerr=error if series.low != series.high else None,
            color=series.colour,
            alpha=0.55 if series.is_dashed else 0.95,
            hatch="///" if series.is_dashed else None,
            edgecolor="white",
            error_kw={"elinewidth": 1, "ecolor": "#444444", "capsize": 2},
        )
        handles.setdefault(series.name, bar)
    axis.set_yticks(place, [plain(series.name) for series in panel.series], fontsize=7)
    axis.invert_yaxis()
    axis.grid(axis="y", visible=False)
    if panel.has_log_y:
        set_log_scale(axis.xaxis, *_range([series.mean[0] for series in panel.series]))
    else:
        axis.set_xlim(left=0)


def _range(values: list[float]) -> tuple[float, float]:
    positive = [value for value in values if value > 0]
    return min(positive, default=1.0), max(positive, default=1.0)


def _labels(ticks: list[float]) -> list[str]:
    """Return a label for each tick of a logarithmic axis, none for one that would touch the one after it."""
    apart = (ticks[-1] / ticks[0]) ** LABEL_SHARE if ticks and ticks[0] > 0 else 1.0
    labels, last = [], math.inf
    for tick in reversed(ticks):
        is_free = tick * apart < last
        labels.append(f"{tick:g}" if is_free else "")
        last = tick if is_free else last
    return labels[::-1]
