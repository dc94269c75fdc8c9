"""The band over time as a picture: a rectangle for every piece of an upload, over its blocks and seconds."""

from __future__ import annotations

from typing import Any

import numpy as np

from fedwave.errors import ProblemError
from fedwave.plots.style import SCHEME_COLOURS, new_figure
from fedwave.wireless.schedule import UploadSchedule

_MAX_LABELS = 60  # pieces that still get the number of their device
_SHADES = (0.95, 0.6)  # of devices in turn, so that neighbours can be told apart
_TAKEN = 0.3  # of blocks that others have left


def plot_schedule(schedule: UploadSchedule, *, bandwidth_hz: float, num_blocks: int, title: str = "") -> Any:
    """Return a figure of who sends when on which blocks: of ``plan.schedule``, or as a round was played."""
    if schedule.device.size == 0:
        raise ProblemError("Nothing to draw: nobody uploads in this schedule.")
    figure, (axis,) = new_figure(1, width=5.4, height=3.6)
    draw_schedule(axis, schedule, bandwidth_hz=bandwidth_hz, num_blocks=num_blocks)
    axis.set_title(title or "The band over time")
    return figure


def draw_schedule(axis: Any, schedule: UploadSchedule, *, bandwidth_hz: float, num_blocks: int) -> None:
    """Draw every piece over its time and its blocks; pale ones are of blocks that others have left."""
    first, width = schedule.first_hz / bandwidth_hz, schedule.width_hz / bandwidth_hz
    time_s = schedule.end_s - schedule.start_s
    _, place = np.unique(schedule.device, return_inverse=True)
    begin_s = np.full(place.max() + 1, np.inf)
    np.minimum.at(begin_s, place, schedule.start_s)
    began = schedule.start_s == begin_s[place]
    own = set(zip(place[began].tolist(), first[began].tolist(), strict=True))
    is_taken = [(row, block) not in own for row, block in zip(place.tolist(), first.tolist(), strict=True)]
    for k, row in enumerate(place):
        axis.broken_barh(
            [(schedule.start_s[k], time_s[k])],
            (first[k], width[k]),
            facecolor=SCHEME_COLOURS["URAL (optimal)"],
            alpha=_TAKEN if is_taken[k] else _SHADES[row % 2],
            edgecolor="white",
            linewidth=0.6,
        )
    end_s = float(schedule.end_s.max())
    big = (time_s > 0.03 * end_s) & (width > 0.03 * num_blocks)
    if np.count_nonzero(big) <= _MAX_LABELS:
        for k in np.flatnonzero(big).tolist():
            middle = (schedule.start_s[k] + time_s[k] / 2, first[k] + width[k] / 2)
            axis.annotate(str(schedule.device[k]), middle, ha="center", va="center", fontsize=6)
    axis.set(xlim=(0, end_s), ylim=(0, num_blocks))
    axis.set(xlabel="time of uploads [s]", ylabel="blocks of the band")
    axis.yaxis.get_major_locator().set_params(integer=True)
    axis.grid(visible=False)
