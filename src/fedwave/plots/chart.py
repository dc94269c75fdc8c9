"""A chart as data: panels of series with intervals. Pictures and interactive pages are drawn from it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from fedwave.intervals import interval
from fedwave.plots.style import COLOURS
from fedwave.units import FloatArray

Kind = Literal["line", "bars"]
Curve = tuple[FloatArray, FloatArray]  # x and y of one run
MAX_POINTS = 500  # of a mean whose seeds have different x: more than a picture shows
MAX_ROOM = 0.5  # for intervals above and below the means, as a share of the range of the means


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
    # Each seed's own curve, where a picture shows them instead of the interval.
    runs: tuple[Curve, ...] = field(default=(), compare=False)


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

    @property
    def y_range(self) -> tuple[float, float] | None:
        """The part of the y-axis to show: the means and as much of wide intervals as leaves them readable."""
        means = [v for one in self.series for v in one.mean if math.isfinite(v)]
        edges = [v for one in self.series for v in (*one.low, *one.high) if math.isfinite(v)]
        if self.has_log_y or not means or min(means) == max(means):
            return None
        room = MAX_ROOM * (max(means) - min(means))
        low, high = max(min(edges), min(means) - room), min(max(edges), max(means) + room)
        margin = 0.04 * (high - low)
        return low - margin, high + margin


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
    values = np.array(by_seed, dtype=np.float64).reshape(len(by_seed), len(x))
    shown = [interval(column.tolist()) for column in values.T]
    return _series(name, x, values, np.array([one.half_width for one in shown]), look)


def nth_look(index: int) -> dict[str, Any]:
    """Return the colour of a series by its place; when all colours are in use, lines are dashed."""
    return {"colour": COLOURS[index % len(COLOURS)], "is_dashed": index >= len(COLOURS)}


def series_of_runs(name: str, curves: Sequence[Curve], **look: Any) -> Series | None:
    """Return the mean of one curve a seed, where they were measured; None if nowhere.

    Where the curves have different x, the mean is over the range they share, interpolated.
    """
    measured = [(x[np.isfinite(y)], y[np.isfinite(y)]) for x, y in curves]
    measured = [(x, y) for x, y in measured if x.size]
    if not measured:
        return None
    shared = measured[0][0]
    if not all(np.array_equal(x, shared) for x, _ in measured):
        start, end = max(x[0] for x, _ in measured), min(x[-1] for x, _ in measured)
        shared = np.unique(np.concatenate([x for x, _ in measured]))
        shared = shared[(shared >= start) & (shared <= end)]
        if len(shared) > MAX_POINTS:
            shared = shared[np.linspace(0, len(shared) - 1, MAX_POINTS).round().astype(np.int64)]
    rows = [np.interp(shared, x, y) for x, y in measured]
    one = series_over_seeds(name, shared.tolist(), [row.tolist() for row in rows], **look)
    return replace(one, runs=tuple(measured)) if len(measured) > 1 else one


def paired_series(
    x: Sequence[float],
    by_scheme: Mapping[str, Mapping[int, Sequence[float]]],
    looks: Mapping[str, Any],
    *,
    is_log: bool = False,
    is_one_level: bool = False,
) -> tuple[Series, ...]:
    """Return the curves of schemes that ran on the same seeds, with intervals of what differs between them.

    Seeds differ far more than schemes do, as each has a partition of its own; that part is the same for all
    schemes and would hide them. It is taken out of the intervals (Cousineau 2005, with Morey's correction):
    each seed's mean over the schemes is set to the mean of all. The means themselves do not change. With
    ``is_log`` all is done to logarithms: means are geometric, as fits a logarithmic axis. With
    ``is_one_level`` a seed's level is its mean over all points of all curves, so that the intervals are also
    of what differs along a curve; else each x has a level of its own.
    """
    shared = sorted(set.intersection(*(set(own) for own in by_scheme.values()))) if by_scheme else []
    if not shared:
        return ()
    values = np.array([[own[seed] for seed in shared] for own in by_scheme.values()], dtype=np.float64)
    values = values.reshape(len(by_scheme), len(shared), len(x))  # scheme, seed, x
    values = np.log(values) if is_log else values
    over = (0, 2) if is_one_level else (0,)
    num_levelled = len(by_scheme) * (len(x) if is_one_level else 1)
    levelled, factor = values, 1.0
    if num_levelled > 1:
        level = values.mean(axis=over, keepdims=True)  # of each seed
        levelled = values - level + level.mean(axis=1, keepdims=True)
        factor = math.sqrt(num_levelled / (num_levelled - 1))
    found = []
    for name, own, flat in zip(by_scheme, values, levelled, strict=True):
        halves = [factor * interval(column.tolist()).half_width for column in flat.T]
        one = _series(name, x, own, np.array(halves), looks.get(name, {}))
        found.append(_exponential(one) if is_log else one)
    return tuple(found)


def _exponential(one: Series) -> Series:
    mean, low, high = (tuple(math.exp(v) for v in values) for values in (one.mean, one.low, one.high))
    return replace(one, mean=mean, low=low, high=high)


def _series(
    name: str, x: Sequence[float], values: FloatArray, half_width: FloatArray, look: Mapping[str, Any]
) -> Series:
    mean = values.mean(axis=0)
    half = np.nan_to_num(half_width, nan=0.0)
    return Series(
        name,
        tuple(float(value) for value in x),
        tuple(mean.tolist()),
        tuple((mean - half).tolist()),
        tuple((mean + half).tolist()),
        len(values),
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
