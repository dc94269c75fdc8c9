"""Where the textbook channel has a loss."""

from __future__ import annotations

import pytest

from fedwave.errors import ProblemError
from fedwave.wireless.cell import Cell
from fedwave.wireless.settings.load import load_cell, load_cell_config


def write(tmp_path, text, name="table.csv"):
    path = tmp_path / name
    path.write_text(text)
    return str(path)


def test_a_device_at_the_base_station_has_no_log_distance_loss(tmp_path):
    placement = {"kind": "file", "path": write(tmp_path, "x_m,y_m\n5,0\n0,0\n")}
    config = load_cell_config("chen2020", {"channel": {"placement": placement}})
    with pytest.raises(ProblemError, match="Device 1 stands at the base station"):
        Cell.build(config, num_devices=2, seed=0)


def test_a_device_may_stand_nearer_than_a_metre(tmp_path):
    placement = {"kind": "file", "path": write(tmp_path, "x_m,y_m\n0.5,0\n")}
    cell = load_cell("chen2020", num_devices=1, overrides={"channel": {"placement": placement}})
    assert cell.draw(0).channel_gain == pytest.approx([4.0])  # d^-2
    assert "Is a device too close" in cell.warnings[0]
