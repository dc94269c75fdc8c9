from __future__ import annotations

import numpy as np
import pytest

from fedwave.errors import ProblemError
from fedwave.plots.schedule import plot_schedule
from fedwave.plots.style import save_figure
from fedwave.wireless.schedule import UploadSchedule


def two_devices(count=4):
    """Device 4 has one block of 10 Hz for 2 s, device 7 another, and from 2 s to 5 s both."""
    return UploadSchedule(
        device=np.array([4, 7, 7, 7])[:count],
        first_hz=np.array([0.0, 10.0, 0.0, 10.0])[:count],
        width_hz=np.full(count, 10.0),
        start_s=np.array([0.0, 0.0, 2.0, 2.0])[:count],
        end_s=np.array([2.0, 2.0, 5.0, 5.0])[:count],
        power_w=np.full(count, 0.1),
    )


def test_every_piece_is_drawn_over_its_seconds_and_blocks(tmp_path):
    figure = plot_schedule(two_devices(), bandwidth_hz=10.0, num_blocks=2, title="A round")
    (axis,) = figure.axes
    boxes = [one.get_paths()[0].get_extents().bounds for one in axis.collections]
    assert boxes == [(0.0, 0.0, 2.0, 1.0), (0.0, 1.0, 2.0, 1.0), (2.0, 0.0, 3.0, 1.0), (2.0, 1.0, 3.0, 1.0)]
    shades = [one.get_alpha() for one in axis.collections]
    assert shades[2] < min(shades[:2])  # what another has left
    assert shades[0] != shades[1] == shades[3]
    assert [text.get_text() for text in axis.texts] == ["4", "7", "7", "7"]
    assert axis.get_xlim() == (0.0, 5.0)
    assert axis.get_ylim() == (0.0, 2.0)
    assert axis.get_title() == "A round"
    assert save_figure(figure, tmp_path / "band.png").stat().st_size > 3_000


def test_without_uploads_there_is_nothing_to_draw():
    with pytest.raises(ProblemError, match="nobody uploads in this schedule"):
        plot_schedule(two_devices(0), bandwidth_hz=10.0, num_blocks=2)
