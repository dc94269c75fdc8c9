"""Pictures of an allocation (devices against blocks, power, delay) and of a Pareto front."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from fedwave.allocation import Allocation, AllocationProblem, ParetoFront, account
from fedwave.allocation.schedule import upload_schedule
from fedwave.errors import ProblemError
from fedwave.plots.schedule import draw_schedule
from fedwave.plots.style import COLOURS, new_figure, save_figure

_MAX_LABELS = 40  # blocks that still get a label each


def plot_allocation(problem: AllocationProblem, allocation: Allocation) -> Any:
    """Return a figure: who holds each block, at what power and energy, and how the round's time is spent.

    In other accesses than one block each, also the band over time.
    """
    if not allocation.device_of_block:
        raise ProblemError("Nothing to draw: nobody uploads in this allocation.")
    width_hz = allocation.bandwidth_of_device_hz
    device = np.array(list(allocation.device_of_block.values()))
    names = [f"block {m} · device {i}" for m, i in allocation.device_of_block.items()]
    if width_hz is not None:  # several may hold a part of a block, or the same blocks in turn
        device = allocation.selected
        names = [f"device {i} · {width_hz[i] / problem.bandwidth_hz:.3g} blocks" for i in device]
    entry = account(problem, allocation)
    figure, axes = new_figure(
        4 if width_hz is None else 5, width=2.7, height=max(2.6, min(9.0, 0.9 + 0.2 * device.size))
    )
    figure.suptitle(
        f"{allocation.method}: {allocation.num_selected} of {problem.num_devices} devices upload on "
        f"{problem.num_blocks} blocks, objective {allocation.objective:.4g}",
        fontsize=10,
    )
    place = np.arange(device.size)
    used, limit = 1e3 * allocation.transmit_power_w[device], 1e3 * problem.max_power_w[device]
    _bars(axes[0], place, problem.contribution[device], COLOURS[2], "contribution")
    axes[1].barh(place, limit, color="#d9d9d9", label="limit")
    axes[1].barh(place, used, color=COLOURS[0], height=0.55, label="used")
    axes[1].set_xlabel("transmit power [mW]")
    if limit.max() > 50 * used.min():
        axes[1].set(xscale="log", xlim=(used.min() / 3.0, None))
    axes[1].legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, fontsize=8, frameon=False)
    _bars(axes[2], place, entry.upload_energy_j[device], COLOURS[4], "upload energy [J]")
    start_s = allocation.compute_delay_s + entry.upload_start_s[device]
    _timeline(
        axes[3], place, entry.compute_delay_s[device], start_s, entry.upload_delay_s[device], allocation
    )
    if problem.has_own_deadlines:
        ends = allocation.compute_delay_s + np.asarray(problem.deadline_of(device))
        axes[3].plot(ends, place, "|", color="black", markersize=12, label="deadline")
    elif problem.longest_delay_s is not None:
        end = allocation.compute_delay_s + problem.longest_delay_s
        axes[3].axvline(end, color="black", linestyle="--", linewidth=1)
        axes[3].set_xlim(0, 1.06 * end)
        axes[3].text(
            0.985 * end, device.size - 0.5, "deadline", rotation=90, ha="right", va="bottom", fontsize=7
        )
    if width_hz is not None:
        band = upload_schedule(problem, allocation)
        draw_schedule(axes[4], band, bandwidth_hz=problem.bandwidth_hz, num_blocks=problem.num_blocks)
    for axis in axes[:4]:
        axis.set_ylim(device.size - 0.4, -0.6)
        axis.grid(axis="y", visible=False)
        axis.set_yticks([])
    step = max(1, device.size // _MAX_LABELS)
    axes[0].set_yticks(place[::step], names[::step])
    axes[0].tick_params(axis="y", length=0, labelsize=8)
    return figure


def plot_pareto(front: ParetoFront) -> Any:
    """Return a figure of energy against delay for all weights, coloured by contribution."""
    figure, (axis,) = new_figure(1, width=5.4, height=3.8)
    order = np.argsort(front.energy_weight / np.maximum(front.delay_weight, 1e-300))
    energy, delay = front.energy_j[order], front.delay_s[order]
    axis.plot(energy, delay, color="#999999", linewidth=1, zorder=1)
    points = axis.scatter(energy, delay, c=front.contribution[order], cmap="viridis", s=34, zorder=2,
                          edgecolors="black", linewidths=0.4)  # fmt: skip
    figure.colorbar(points, ax=axis, label="contribution of the selected devices")
    for axis_name, values in (("x", energy), ("y", delay)):
        if values.min() > 0 and values.max() > 20 * values.min():
            getattr(axis, f"set_{axis_name}scale")("log")
    for end, text, offset, side in (
        (0, "energy weighs little", (4, -14), "right"),
        (-1, "energy weighs most", (8, 2), "left"),
    ):
        point = (energy[end], delay[end])
        axis.annotate(text, point, xytext=offset, textcoords="offset points", fontsize=8, ha=side)
    axis.margins(0.14)
    axis.set(xlabel="energy of the round [J]", ylabel="time of the round [s]",
             title="Optimal trade-off between energy and delay")  # fmt: skip
    return figure


def save(figure: Any, path: Path) -> Path:
    """Write the figure; the file name's ending chooses the format."""
    return save_figure(figure, path)


def _bars(axis: Any, place: Any, values: Any, colour: str, label: str) -> None:
    axis.barh(place, values, color=colour, height=0.7)
    axis.set_xlabel(label)


def _timeline(
    axis: Any, place: Any, compute_s: Any, start_s: Any, upload_s: Any, allocation: Allocation
) -> None:
    """Draw each device's computing, its wait for the slowest device, and its upload."""
    axis.barh(place, compute_s, color=COLOURS[5], height=0.7, label="compute")
    axis.barh(place, upload_s, left=start_s, color=COLOURS[1], height=0.7, label="upload")
    axis.axvline(allocation.delay_s, color=COLOURS[1], linewidth=0.8)
    axis.set_xlim(0, None)
    axis.set_xlabel("time [s]")
    axis.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, fontsize=8, frameon=False)
