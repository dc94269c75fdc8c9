"""Curves of runs, one line per setting and a faint one for each of its seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fedwave.plots.style import COLOURS, new_figure, plain
from fedwave.units import FloatArray


@dataclass(frozen=True, eq=False)
class Curve:
    """One run's line: what is on the two axes."""

    x: FloatArray
    y: FloatArray


@dataclass(frozen=True)
class Panel:
    """One pair of axes: the curves of every setting."""

    x_label: str
    y_label: str
    curves: Mapping[str, Sequence[Curve]]  # setting -> one curve per seed
    is_percentage: bool = False
    has_log_x: bool = False


def plot_panels(panels: Sequence[Panel], *, title: str | None = None, num_columns: int | None = None) -> Any:
    """Return a figure with the panels side by side and one legend."""
    columns = num_columns or len(panels)
    figure, axes = new_figure(columns, num_rows=-(-len(panels) // columns))
    for axis, panel in zip(axes, panels, strict=False):
        for colour, (name, curves) in zip(_colours(panel.curves), panel.curves.items(), strict=True):
            draw_curves(axis, curves, name, colour, scale=100.0 if panel.is_percentage else 1.0)
        if panel.has_log_x:
            axis.set_xscale("log")
        axis.set_xlabel(panel.x_label)
        axis.set_ylabel(panel.y_label)
    if axes[0].get_legend_handles_labels()[0]:  # nothing is drawn where nothing was measured
        axes[0].legend(frameon=False)
    if title:
        figure.suptitle(plain(title), fontsize=10)
    return figure


def _colours(curves: Mapping[str, Any]) -> list[str]:
    return [COLOURS[index % len(COLOURS)] for index in range(len(curves))]


def draw_curves(axis: Any, curves: Sequence[Curve], name: str, colour: str, *, scale: float) -> None:
    """Draw one run as a line; of several, the mean as a line and each run as a faint one behind it."""
    measured = [Curve(c.x[np.isfinite(c.y)], scale * c.y[np.isfinite(c.y)]) for c in curves]
    measured = [curve for curve in measured if curve.x.size]
    if not measured:
        return
    if len(measured) == 1:
        axis.plot(measured[0].x, measured[0].y, color=colour, label=plain(name))
        return
    for curve in measured:
        axis.plot(curve.x, curve.y, color=colour, linewidth=0.7, alpha=0.25)
    mean = _mean(measured)
    axis.plot(mean.x, mean.y, color=colour, label=f"{plain(name)} (mean of {len(measured)})")


def _mean(curves: Sequence[Curve]) -> Curve:
    """Return the mean curve; where runs have different x, over the range they share, interpolated."""
    first = curves[0]
    if all(np.array_equal(curve.x, first.x) for curve in curves):
        return Curve(first.x, np.mean([curve.y for curve in curves], axis=0))
    start, end = max(curve.x[0] for curve in curves), min(curve.x[-1] for curve in curves)
    shared = np.unique(np.concatenate([curve.x for curve in curves]))
    shared = shared[(shared >= start) & (shared <= end)]
    return Curve(shared, np.mean([np.interp(shared, curve.x, curve.y) for curve in curves], axis=0))
