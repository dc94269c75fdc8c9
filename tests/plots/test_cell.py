"""The picture of a cell is written for every preset, also for one device."""

from __future__ import annotations

import numpy as np
import pytest

from fedwave.errors import RunError
from fedwave.plots.cell import plot_cell
from fedwave.wireless.cell import Cell
from fedwave.wireless.describe.link_budget import link_budget
from fedwave.wireless.settings.load import load_cell_config
from fedwave.wireless.terms import ChannelDraw

pytest.importorskip("matplotlib")


@pytest.mark.parametrize(("preset", "num_devices"), [("umi-3.5ghz", 30), ("paper", 30), ("fedl2021", 1)])
def test_a_picture_is_written(preset, num_devices, tmp_path):
    cell = Cell.build(load_cell_config(preset), num_devices=num_devices, seed=0)
    path = tmp_path / "cell.png"
    plot_cell(cell, link_budget(cell, cell.draw(0), model_bits=1e6), path, title=preset)
    assert path.read_bytes().startswith(b"\x89PNG")


def test_a_cell_in_which_nobody_is_heard_has_a_picture_too(tmp_path):
    cell = Cell.build(load_cell_config("umi-3.5ghz"), num_devices=5, seed=0)
    silence = ChannelDraw(channel_gain=np.zeros(5), interference_w=np.zeros(20))
    path = tmp_path / "cell.png"
    plot_cell(cell, link_budget(cell, silence, model_bits=1e6), path, title="silence")
    assert path.exists()


def test_a_picture_that_cannot_be_written_is_one_line(tmp_path):
    cell = Cell.build(load_cell_config("paper"), num_devices=3, seed=0)
    budget = link_budget(cell, cell.draw(0), model_bits=1.0)
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file" / "cell.png", tmp_path / "cell.xyz"):
        with pytest.raises(RunError, match="cannot write the picture"):
            plot_cell(cell, budget, path, title="paper")
