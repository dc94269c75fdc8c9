"""A chart as data: panels of series with intervals. Pictures and interactive pages are drawn from it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from fedwave.intervals import interval
from fedwave.plots.style import COLOURS, SCHEME_COLOURS, schemes_of
from fedwave.units import FloatArray

Kind = Literal["line", "bars", "dots"]
Curve = tuple[FloatArray, FloatArray]  # x and y of one run
MAX_POINTS = 500  # of a mean whose seeds have different x: more than a picture shows
MAX_ROOM = 1.0  # for intervals above and below the means, as a share of the range of the means
MIN_SPAN = 0.1  # of an axis, as a share of its values: a change of 0.1 % is not drawn as a cliff
ALIKE = 1e-9  # relative difference of curves that coincide


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
    mark_y: float | None = None  # a horizontal line, e.g. no difference

    @property
    def y_range(self) -> tuple[float, float] | None:
        """The part of the y-axis to show: the means and as much of wide intervals as leaves them readable.

        Of dots the whole intervals: they are lines, and one that is cut off says nothing. It is never less
        than a tenth of the values themselves.
        """
        means = [v for one in self.series for v in one.mean if math.isfinite(v)]
        edges = [v for one in self.series for v in (*one.low, *one.high) if math.isfinite(v)]
        if self.has_log_y or not means:
            return None
        if self.mark_y is not None:
            means, edges = [*means, self.mark_y], [*edges, self.mark_y]
        room = (MAX_ROOM * (max(means) - min(means)) if self.kind != "dots" else 0.0) or math.inf
        low, high = max(min(edges), min(means) - room), min(max(edges), max(means) + room)
        short = MIN_SPAN * max(map(abs, means)) - (high - low)
        if short > 0:
            low, high = low - short / 2.0, high + short / 2.0
        margin = 0.04 * (high - low)
        return (low - margin, high + margin) if margin > 0 else None


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


def looks_of(names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return the look of each series: a scheme's own colour, else one that is free; then lines are dashed."""
    fixed = {name: SCHEME_COLOURS[scheme] for name, scheme in schemes_of(names).items()}
    free = [colour for colour in COLOURS if colour not in fixed.values()] or list(COLOURS)
    others = [name for name in dict.fromkeys(names) if name not in fixed]
    looks = {name: {"colour": colour, "is_dashed": False} for name, colour in fixed.items()}
    for index, name in enumerate(others):
        looks[name] = {"colour": free[index % len(free)], "is_dashed": index >= len(free)}
    return looks


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
    reference: str | None = None,
    is_log: bool = False,
) -> tuple[Series, ...]:
    """Return the curves of schemes that ran on the same seeds, with intervals of what they differ by.

    Seeds differ far more than schemes do, as each has a partition of its own. So the interval around a curve
    is that of its difference to the ``reference`` (None: the first) on the same seeds: where the reference's
    line is outside, the two surely differ. The reference has none. The means are those over seeds. With
    ``is_log`` all is done to logarithms: means are geometric, and intervals are those of ratios.
    """
    shared = sorted(set.intersection(*(set(own) for own in by_scheme.values()))) if by_scheme else []
    if not shared:
        return ()
    values = {
        name: np.array([own[seed] for seed in shared], dtype=np.float64).reshape(len(shared), len(x))
        for name, own in by_scheme.items()
    }
    if is_log:
        values = {name: np.log(own) for name, own in values.items()}
    base = values[reference if reference in values else next(iter(values))]
    found = []
    for name, own in values.items():
        halves = [interval(column.tolist()).half_width for column in (own - base).T]
        one = _series(name, x, own, np.array(halves), looks.get(name, {}))
        found.append(_exponential(one) if is_log else one)
    return tuple(found)


def merged(chart: Chart) -> Chart:
    """Return the chart with series that coincide in every panel as one, named by all of them."""
    names = chart.names
    together: dict[str, str] = {}
    for name in names:
        together[name] = next((first for first in together.values() if _coincide(chart, first, name)), name)
    labels = {
        first: " = ".join(name for name in names if together[name] == first) for first in together.values()
    }
    panels = tuple(
        replace(
            panel,
            series=tuple(
                replace(one, name=labels[one.name]) for one in panel.series if together[one.name] == one.name
            ),
        )
        for panel in chart.panels
    )
    return replace(chart, panels=panels)


def _coincide(chart: Chart, first: str, second: str) -> bool:
    for panel in chart.panels:
        found = [one for one in panel.series if one.name in (first, second)]
        if len(found) == 1:
            return False
        if found:
            a, b = (np.array([*one.x, *one.mean]) for one in found)
            if a.shape != b.shape or not np.allclose(a, b, rtol=ALIKE, atol=0.0, equal_nan=True):
                return False
    return True


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
