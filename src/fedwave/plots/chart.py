"""A chart as data: panels of series with intervals. A picture and an interactive page are drawn from the same."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from fedwave.plots.style import COLOURS
from fedwave.runs.compare import interval

Kind = Literal["line", "bars"]


@dataclass(frozen=True)
class Series:
    """One curve, or one bar: means over seeds with their 95 % interval (NaN where there is none)."""

    name: str
    x: tuple[float, ...]
    mean: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    seeds: int = 1
    colour: str = COLOURS[0]
    is_dashed: bool = False


@dataclass(frozen=True)
class ChartPanel:
    """One pair of axes."""

    title: str
    x_label: str
    y_label: str
    series: tuple[Series, ...]
    kind: Kind = "line"
    has_log_x: bool = False
    has_log_y: bool = False
    mark_x: float | None = None  # a vertical line, e.g. the round that the paper reads


@dataclass(frozen=True)
class Chart:
    """Panels with one legend."""

    name: str
    title: str
    caption: str
    panels: tuple[ChartPanel, ...] = field(default_factory=tuple)
    num_columns: int = 3

    @property
    def names(self) -> list[str]:
        """The series of all panels, each once."""
        return list(dict.fromkeys(series.name for panel in self.panels for series in panel.series))


def series_over_seeds(
    name: str, x: Sequence[float], by_seed: Sequence[Sequence[float]], **look: Any
) -> Series:
    """Return the curve of the means; ``by_seed`` has a row of values for each seed."""
    columns = np.array(by_seed, dtype=np.float64).reshape(len(by_seed), len(x)).T
    shown = [interval(column.tolist()) for column in columns]
    halves = [0.0 if math.isnan(one.half_width) else one.half_width for one in shown]
    means = [one.mean for one in shown]
    return Series(
        name,
        tuple(float(value) for value in x),
        tuple(means),
        tuple(mean - half for mean, half in zip(means, halves, strict=True)),
        tuple(mean + half for mean, half in zip(means, halves, strict=True)),
        len(by_seed),
        **look,
    )


def plotted_rows(chart: Chart) -> list[dict[str, Any]]:
    """Return every plotted number as a row."""
    return [
        {
            "panel": panel.title,
            "x_label": panel.x_label,
            "y_label": panel.y_label,
            "series": series.name,
            "x": x,
            "mean": mean,
            "low": low,
            "high": high,
            "seeds": series.seeds,
        }
        for panel in chart.panels
        for series in panel.series
        for x, mean, low, high in zip(series.x, series.mean, series.low, series.high, strict=True)
    ]
