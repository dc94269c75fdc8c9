"""Loss and accuracy of runs against rounds, one line per setting, a band over its seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fedwave.plots.style import COLOURS, new_figure
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
            _draw(axis, curves, name, colour, scale=100.0 if panel.is_percentage else 1.0)
        if panel.has_log_x:
            axis.set_xscale("log")
        axis.set_xlabel(panel.x_label)
        axis.set_ylabel(panel.y_label)
    axes[0].legend(frameon=False)
    if title:
        figure.suptitle(title, fontsize=10)
    return figure


def _colours(curves: Mapping[str, Any]) -> list[str]:
    return [COLOURS[index % len(COLOURS)] for index in range(len(curves))]


def _draw(axis: Any, curves: Sequence[Curve], name: str, colour: str, *, scale: float) -> None:
    """Draw each seed thinly and, where there are several on one x axis, their mean on top."""
    measured = [Curve(c.x[np.isfinite(c.y)], scale * c.y[np.isfinite(c.y)]) for c in curves]
    measured = [curve for curve in measured if curve.x.size]
    if not measured:
        return
    on_same_x = all(np.array_equal(curve.x, measured[0].x) for curve in measured)
    if len(measured) > 1 and on_same_x:
        values = np.stack([curve.y for curve in measured])
        axis.plot(measured[0].x, values.mean(0), color=colour, label=f"{name} (mean of {len(measured)})")
        axis.fill_between(measured[0].x, values.min(0), values.max(0), color=colour, alpha=0.15, linewidth=0)
        return
    for index, curve in enumerate(measured):
        axis.plot(
            curve.x,
            curve.y,
            color=colour,
            label=name if index == 0 else None,
            linewidth=1.6 if len(measured) == 1 else 0.9,
        )
