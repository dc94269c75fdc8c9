"""A file of gains described, and a cell's gains exported and read back."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from typer.testing import CliRunner

from fedwave.cli.app import app
from fedwave.errors import ProblemError
from fedwave.wireless.cell import Cell
from fedwave.wireless.describe.gains import describe_gains, export_gains
from fedwave.wireless.settings.load import load_cell, load_cell_config


def save(folder, values):
    path = folder / "gains.npy"
    np.save(path, np.asarray(values, dtype=float))
    return path


def run(*words):
    result = CliRunner(env={"COLUMNS": "120"}).invoke(app, ["cell", *map(str, words)], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def test_levels_and_fading_are_those_of_a_hand(tmp_path):
    # Device 0 has 1e-9 and 3e-9, device 1 the same a thousand times weaker, the other way round in round 1.
    first = np.array([[1e-9, 3e-9], [1e-12, 3e-12]])
    found = describe_gains(save(tmp_path, [first, first[:, ::-1]]))
    assert (found.num_rounds, found.num_devices, found.num_blocks, found.num_zero) == (2, 2, 2, 0)
    assert found.weakest_db == pytest.approx(-120.0)
    assert found.strongest_db == pytest.approx(10 * math.log10(3e-9))
    assert found.spread_over_devices_db == pytest.approx(15.0)  # means 30 dB apart
    assert found.spread_over_rounds_db == pytest.approx(0.0, abs=1e-9)
    assert found.next_block_correlation == pytest.approx(-1.0)
    assert found.best_block_db == pytest.approx(10 * math.log10(3 / 2))


def test_rounds_that_go_up_and_down_are_noticed(tmp_path):
    found = describe_gains(save(tmp_path, [np.full((3, 4), 1e-9), np.full((3, 4), 1e-11)]))
    assert found.spread_over_rounds_db == pytest.approx(10.0)
    assert found.next_block_correlation == pytest.approx(1.0)


def test_what_a_small_file_cannot_show_is_left_out(tmp_path):
    found = describe_gains(save(tmp_path, [1e-9, 0.0]))
    assert (found.num_rounds, found.num_devices, found.num_blocks, found.num_zero) == (None, 2, None, 1)
    assert found.spread_over_rounds_db is found.next_block_correlation is found.best_block_db is None
    flat = describe_gains(save(tmp_path, np.full((2, 3), 1e-9)))
    assert (flat.num_rounds, flat.num_blocks, flat.next_block_correlation) == (None, 3, None)
    with pytest.raises(ProblemError, match="holds zeros alone"):
        describe_gains(save(tmp_path, np.zeros(3)))
    with pytest.raises(ProblemError, match=r"has shape \(1, 1, 1, 1\)\. Give \(devices,\)"):
        describe_gains(save(tmp_path, np.ones((1, 1, 1, 1))))


@pytest.mark.parametrize("preset", ["umi-3.5ghz", "paper"])
def test_exported_gains_are_the_cells_own_when_read_back(tmp_path, preset):
    path = tmp_path / "gains.npy"
    printed = run(preset, "-n", "6", "--seed", "3", "--export", path, "--rounds", "3")
    assert "gains.npy" in printed.replace("\n", "")
    cell = load_cell(preset, num_devices=6, seed=3)
    again = load_cell(
        preset, num_devices=6, seed=3, overrides={"channel": {"kind": "file", "path": str(path)}}
    )
    for round_index in range(3):
        drawn = cell.draw(round_index).channel_gain
        wide = np.broadcast_to(drawn if drawn.ndim == 2 else drawn[:, None], (6, 20))
        assert_array_equal(again.draw(round_index).channel_gain, wide)
    with pytest.raises(ProblemError, match='Gains are exported as .npy, got "gains.mat"'):
        export_gains(cell, tmp_path / "gains.mat", num_rounds=1)
    with pytest.raises(ProblemError, match="num_rounds must be >= 1, got 0"):
        export_gains(cell, path, num_rounds=0)
    with pytest.raises(ProblemError, match="Cannot write .* Use a folder that exists"):
        export_gains(cell, tmp_path / "no" / "gains.npy", num_rounds=1)


def test_the_command_describes_a_file_of_gains(tmp_path):
    path = save(tmp_path, np.full((2, 3, 4), 1e-9))
    output = run(path)
    assert "2 rounds, 3 devices, 4 blocks" in output
    assert "-90.0, -90.0, -90.0 dB" in output
    assert json.loads(run(path, "--json"))["num_devices"] == 3
    decibels = save(tmp_path, np.full((3, 4), -80.0))
    assert "-80.0, -80.0, -80.0 dB" in run(decibels, "-s", "channel.in_db=true")
    result = CliRunner().invoke(app, ["cell", str(path), "-s", "num_blocks=3"])
    assert result.exit_code != 0


def test_a_cell_of_a_file_says_so(tmp_path):
    path = save(tmp_path, np.full((2, 3, 20), 1e-9))
    output = run("umi-3.5ghz", "-n", "3", "-s", "channel.kind=file", "-s", f"channel.path={path}")
    assert "gains of gains.npy, 2 rounds, seed 0" in output


def test_the_shape_error_says_that_held_out_devices_are_not_in_the_cell(tmp_path):
    path = save(tmp_path, np.full((5, 20), 1e-9))
    config = load_cell_config("umi-3.5ghz", {"channel": {"kind": "file", "path": str(path)}})
    with pytest.raises(ProblemError, match=r"Held-out devices never upload: they are not in the cell\.$"):
        Cell.build(config, num_devices=3, seed=0)  # as training does, whose partition says how many there are


def test_an_upload_shorter_than_the_coherence_time_is_warned_about():
    assert "coherence time of 43.5 ms" in run("umi-3.5ghz", "-n", "9")
    assert "less than the coherence time" not in run("umi-3.5ghz", "-n", "9")
    short = " ".join(run("umi-3.5ghz", "-n", "9", "--model-bits", "1000").split())
    assert "less than the coherence time of 43.5 ms: it meets one state of the fading" in short
    snapshot = run("umi-3.5ghz", "-n", "9", "--model-bits", "1000", "-s", "channel.fading.ergodic=false")
    assert "coherence" not in snapshot
