"""A picture of a cell: where the devices are, how well they are heard, how long their uploads take."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from fedwave.errors import import_extra
from fedwave.plots.style import plain, require_picture_name, save_figure
from fedwave.units import BoolArray, FloatArray, linear_to_db
from fedwave.wireless.cell import Cell
from fedwave.wireless.describe.link_budget import LinkBudget

_BAR = "#3b6ea5"
_MARKS = {"best": "#1b7f3b", "median": "#e08a00", "worst": "#c22f2f"}


def plot_cell(cell: Cell, budget: LinkBudget, path: Path, *, title: str) -> None:
    """Write the picture: a map (where the cell has one) and histograms of SINR and upload time."""
    require_picture_name(path)
    figure_module = import_extra("matplotlib.figure", purpose="Plotting", extra="plots")
    has_map = cell.position_m is not None
    figure = figure_module.Figure(figsize=(14.5, 4.8) if has_map else (9.0, 3.8), layout="constrained")
    axes = figure.subplots(1, 3 if has_map else 2, width_ratios=[1.25, 1, 1] if has_map else None)
    figure.suptitle(plain(title))
    if has_map:
        _map(figure, axes[0], cell, budget)
    _sinr_histogram(axes[-2], budget)
    _delay_histogram(axes[-1], budget, unit="" if cell.config.normalised else " [s]")
    save_figure(figure, path)


def _map(figure: Any, axis: Any, cell: Cell, budget: LinkBudget) -> None:
    assert cell.position_m is not None
    sinr_db = linear_to_db(budget.links.sinr)
    is_heard = np.isfinite(sinr_db)
    order = np.argsort(-sinr_db)  # the weak ones on top: they are the ones to look for
    order = order[is_heard[order]]
    size = float(np.clip(6000.0 / cell.num_devices, 2.0, 40.0))
    sight = None if cell.large_scale is None else cell.large_scale.is_line_of_sight
    limits = np.percentile(sinr_db[is_heard], [2, 98]) if is_heard.any() else (0.0, 1.0)
    groups: list[tuple[str, BoolArray, str | None]] = [("o", np.ones(cell.num_devices, dtype=np.bool_), None)]
    if sight is not None:
        groups = [("o", sight, "line of sight"), ("s", ~sight, "blocked")]
    points = None
    for marker, members, label in groups:
        chosen = order[members[order]]
        points = axis.scatter(
            *cell.position_m[chosen].T, c=sinr_db[chosen], s=size, marker=marker, label=label, cmap="viridis",
            vmin=limits[0], vmax=limits[1], edgecolors="black", linewidths=0.3 if size > 10 else 0.0,
        )  # fmt: skip
    axis.scatter(0, 0, marker="^", s=110, color="black", label="base station", zorder=0)
    axis.set_aspect("equal")
    reach = 1.08 * float(np.abs(cell.position_m).max())
    axis.set(xlim=(-reach, reach), ylim=(-reach, reach), xlabel="x [m]", ylabel="y [m]", title="Devices")
    legend = axis.legend(
        fontsize="small",
        loc="upper center",
        bbox_to_anchor=(0.5, -0.12),
        ncols=3,
        frameon=False,
        handletextpad=0.2,
    )
    for handle in legend.legend_handles[:-1]:  # the colour means SINR: shapes are shown in grey
        handle.set_array(None)
        handle.set_facecolor("lightgrey")
        handle.set_sizes([36.0])
    figure.colorbar(points, ax=axis, label="SINR at full power [dB]", extend="both", shrink=0.9)


def _sinr_histogram(axis: Any, budget: LinkBudget) -> None:
    sinr_db = linear_to_db(budget.links.sinr)
    _histogram(axis, sinr_db[np.isfinite(sinr_db)])
    _mark(axis, {row.who: row.sinr_db for row in budget.rows}, " dB")
    axis.set(xlabel="SINR at full power [dB]", ylabel="devices", title="Signal")


def _delay_histogram(axis: Any, budget: LinkBudget, *, unit: str) -> None:
    """The times span decades, so their axis is logarithmic."""
    delay_s = budget.links.upload_delay_s
    _histogram(axis, np.log10(delay_s[np.isfinite(delay_s)]))
    _mark(
        axis,
        {row.who: float(np.log10(row.upload_delay_s)) for row in budget.rows if row.upload_delay_s > 0},
        " s" if unit else "",
        lambda exponent: 10.0**exponent,
    )
    low, high = axis.get_xlim()
    exponents = np.arange(np.floor(low), np.ceil(high) + 1)
    decades = high - low
    steps = (1, 2, 5) if decades < 2.5 else (1, 3) if decades < 4 else (1,)
    ticks = [exponent + np.log10(step) for exponent in exponents for step in steps]
    ticks = [tick for tick in ticks if low <= tick <= high]
    axis.set_xticks(ticks, [f"{10.0**tick:.3g}" for tick in ticks])
    bits = f"{budget.model_bits / 1e6:.3g} Mbit" if unit else f"S = {budget.model_bits:g}"
    axis.set(xlabel=f"upload time{unit}", title=f"Upload of {bits}")


def _histogram(axis: Any, values: FloatArray) -> None:
    num_bins = int(np.clip(np.sqrt(len(values)) * 2, 8, 60))
    if len(values) and np.ptp(values) == 0:
        num_bins = 1
    axis.hist(values, bins=num_bins, color=_BAR, edgecolor="white", linewidth=0.4)
    axis.spines[["top", "right"]].set_visible(False)
    axis.set_axisbelow(True)
    axis.grid(axis="y", alpha=0.3)
    axis.yaxis.get_major_locator().set_params(integer=True)


def _mark(axis: Any, marks: dict[str, float], unit: str, show: Any = float) -> None:
    marks = {who: value for who, value in marks.items() if np.isfinite(value)}
    if not marks:  # nobody is heard
        return
    for who, value in marks.items():
        axis.axvline(value, color=_MARKS[who], linewidth=1.6, label=f"{who} {show(value):.3g}{unit}")
    axis.set_ylim(top=1.18 * axis.get_ylim()[1])  # room for the legend above the bars
    axis.legend(
        fontsize="small", loc="upper center", ncols=3, framealpha=1.0, columnspacing=1.0, handlelength=1.2
    )
