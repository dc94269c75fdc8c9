"""A chart as a picture."""

from __future__ import annotations

import math
import textwrap
from typing import Any

import numpy as np

from fedwave.plots.chart import Chart, ChartPanel, Series
from fedwave.plots.style import STYLES, Picture, Style, new_figure, plain, set_log_scale

MANY = 4  # series whose intervals would cover each other
MAX_MARKED = 12  # points of a curve that each get a dot
MAX_LINE = 26  # letters of a bar's name in one line
MIN_PANEL_IN = 2.2  # width of a panel with the type of a screen
LETTERS_PER_IN = 14.3  # of a legend, with the type of a screen
LABEL_LETTERS_PER_IN = 12.5  # of an axis
MAX_TITLE = 400  # letters of a heading or note
LABEL_SHARE = 0.022  # of an axis that a character of a label takes, with its part of the gap


def draw_chart(
    chart: Chart,
    *,
    title: str | None = None,
    note: str = "",
    style: Style = STYLES["screen"],
    width_in: float | None = None,
) -> Picture:
    """Return a chart as a picture with one legend below the panels, and a note below that.

    ``width_in`` is the width of the whole; panels go below each other where they would be too narrow.
    """
    size = style.scale
    columns = min(chart.num_columns, len(chart.panels))
    width, height = style.panel_in
    if width_in is not None:
        columns = max(1, min(columns, int(width_in / (MIN_PANEL_IN * size))))
        width, height = width_in / columns, width_in / columns * height / width
    rows = -(-len(chart.panels) // columns)
    handles: dict[str, Any] = {}
    is_one = len(chart.names) == 1 and title is None  # under a heading that names it
    has_legend = not is_one and any(panel.kind == "line" for panel in chart.panels)
    labels = {one.name: label_of(one) for panel in chart.panels for one in panel.series} if has_legend else {}
    letters = columns * width * LETTERS_PER_IN / size
    in_a_row = max(1, int(letters / (max(map(len, labels.values()), default=0) + 9)))
    heading = textwrap.fill(plain(title or "", most=MAX_TITLE), int(0.85 * letters))
    below = textwrap.fill(plain(note, most=MAX_TITLE), int(1.2 * letters))
    lines = -(-len(labels) // in_a_row) + 0.9 * (below.count("\n") + 1 if below else 0)
    lines += 1.2 * heading.count("\n")
    figure, axes = new_figure(columns, width=width, height=height + 0.22 * size * lines / rows, num_rows=rows)
    for axis, panel in zip(axes, chart.panels, strict=False):
        if panel.kind == "line":
            handles |= draw_lines(axis, panel, line_pt=style.line_pt)
        else:
            handles = _bars(axis, panel) | handles  # a legend shows lines, where there are any
        axis.set_title(plain(panel.title), fontsize=9 * size)
        for side, label, inches in (("x", panel.x_label, width), ("y", panel.y_label, height)):
            text = textwrap.fill(label, max(1, int(inches * LABEL_LETTERS_PER_IN / size)))
            axis.set(**{f"{side}label": text})
            getattr(axis, f"{side}axis").label.set_fontsize(8.5 * size)
        axis.tick_params(labelsize=8 * size)
    for axis in axes[len(chart.panels) :]:
        axis.set_visible(False)
    if heading:
        figure.suptitle(heading, fontsize=10 * size)
    if labels:
        figure.legend(
            [handles[name] for name in labels],
            list(labels.values()),
            loc="outside lower center",
            ncols=min(len(labels), in_a_row),
            fontsize=8 * size,
            frameon=False,
            handlelength=3.2,  # shows that a dashed line is one, also under its marker
            title=below or None,
            title_fontsize=6.5 * size,
        )
    elif below:
        figure.supxlabel(below, fontsize=6.5 * size)
    return Picture(figure)


def label_of(series: Series) -> str:
    """Return what a legend calls a series; a mean with its seeds behind it says so."""
    return plain(series.name) + (f" (mean of {len(series.runs)})" if series.runs else "")


def draw_lines(axis: Any, panel: ChartPanel, *, line_pt: float = 1.5) -> dict[str, Any]:
    """Draw each series as a line with its interval, or with its runs faintly behind it; return the lines."""
    alpha = 0.07 if len(panel.series) > MANY else 0.13
    handles = {}
    for series in panel.series:
        for x, y in series.runs:
            axis.plot(x, y, color=series.colour, linewidth=line_pt / 2.0, alpha=0.25)
        (handles[series.name],) = axis.plot(
            series.x,
            series.mean,
            color=series.colour,
            linestyle="--" if series.is_dashed else "-",
            marker="o" if len(series.x) <= MAX_MARKED else None,
            markersize=2.4 * line_pt,
            linewidth=line_pt,
        )
        if series.low != series.high and not series.runs:
            axis.fill_between(series.x, *_band(series, panel), color=series.colour, alpha=alpha, linewidth=0)
    if panel.y_range is not None and not any(series.runs for series in panel.series):
        axis.set_ylim(*panel.y_range)
    if panel.has_log_x:
        ticks = sorted({x for series in panel.series for x in series.x})
        set_log_scale(axis.xaxis, *_range(ticks))
        if len(ticks) <= MAX_MARKED:
            axis.set_xticks(ticks, _labels(ticks), minor=False)
            axis.minorticks_off()
    if panel.has_log_y:
        set_log_scale(axis.yaxis, *_range([y for series in panel.series for y in series.mean]))
    if panel.mark_y is not None:
        axis.axhline(panel.mark_y, color="#888888", linewidth=0.8)
    if panel.mark_x is not None:
        axis.axvline(panel.mark_x, color="#888888", linewidth=0.8, linestyle=":")
    return handles


def _band(series: Series, panel: ChartPanel) -> tuple[np.ndarray, np.ndarray]:
    """Return the interval; on a logarithmic axis it ends above zero."""
    low, high = np.array(series.low), np.array(series.high)
    if panel.has_log_y:
        low = np.maximum(low, 0.05 * np.array(series.mean))
    return low, high


def _bars(axis: Any, panel: ChartPanel) -> dict[str, Any]:
    """Draw one bar for each series, named on the axis: the legend need not be looked up.

    A logarithmic axis has no zero for a bar to begin at: there it is a dot, as where dots are wanted.
    """
    has_dots = panel.has_log_y or panel.kind == "dots"
    place = np.arange(len(panel.series))
    handles = {}
    for at, series in zip(place, panel.series, strict=True):
        error = np.array([[series.mean[0] - _band(series, panel)[0][0]], [series.high[0] - series.mean[0]]])
        if has_dots:
            handles[series.name] = axis.errorbar(
                series.mean[0],
                at,
                xerr=error if series.low != series.high else None,
                fmt="o",
                color=series.colour,
                markerfacecolor="white" if series.is_dashed else series.colour,
                markersize=5,
                capsize=2,
                elinewidth=1,
            )
            continue
        handles[series.name] = axis.barh(
            at,
            series.mean[0],
            xerr=error if series.low != series.high else None,
            color=series.colour,
            alpha=0.55 if series.is_dashed else 0.95,
            hatch="///" if series.is_dashed else None,
            edgecolor="white",
            error_kw={"elinewidth": 1, "ecolor": "#444444", "capsize": 2},
        )
    names = ["\n".join(textwrap.wrap(plain(series.name), MAX_LINE)) for series in panel.series]
    axis.set_yticks(place, names, fontsize=7)
    axis.invert_yaxis()
    axis.grid(axis="y", visible=False)
    if panel.has_log_y:
        set_log_scale(axis.xaxis, *_range([series.mean[0] for series in panel.series]))
    elif panel.kind == "dots" and panel.y_range is not None:
        axis.set_xlim(*panel.y_range)
    else:
        axis.set_xlim(left=0)
    if has_dots:
        axis.set_ylim(len(panel.series) - 0.5, -0.5)
    if panel.mark_y is not None:
        axis.axvline(panel.mark_y, color="#888888", linewidth=0.8)
    return handles


def _range(values: list[float]) -> tuple[float, float]:
    positive = [value for value in values if value > 0]
    return min(positive, default=1.0), max(positive, default=1.0)


def _labels(ticks: list[float]) -> list[str]:
    """Return a label for each tick of a logarithmic axis: the ends', and those that touch no other."""
    labels = [f"{tick:g}" for tick in ticks]
    span = math.log(ticks[-1] / ticks[0]) if len(ticks) > 1 and ticks[0] > 0 else 1.0
    kept: list[int] = []
    for at in dict.fromkeys([*range(len(ticks))[-1:], *range(len(ticks))[:1], *reversed(range(len(ticks)))]):
        if all(
            abs(math.log(ticks[at] / ticks[other])) / span
            > 0.5 * LABEL_SHARE * (len(labels[at]) + len(labels[other]) + 2)
            for other in kept
        ):
            kept.append(at)
    return [label if at in kept else "" for at, label in enumerate(labels)]
