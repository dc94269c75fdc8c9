"""``fedwave cell``: what it prints, writes and refuses."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import fedwave
from fedwave.cli.app import app
from fedwave.wireless.cell import Cell
from fedwave.wireless.describe.cell import describe_cell
from fedwave.wireless.settings.load import load_cell_config
from fedwave.wireless.settings.presets import CELL_PRESETS

# A new process must import the package under test, not another installed copy.
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(fedwave.__file__).parents[1])}


def run(*words: str) -> str:
    result = CliRunner().invoke(app, ["cell", *words], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def test_without_a_name_it_lists_the_presets():
    output = run()
    assert all(name in output for name in CELL_PRESETS)


@pytest.mark.parametrize("preset", CELL_PRESETS)
def test_every_preset_shows_what_python_describes(preset):
    output = run(preset, "-n", "20", "--seed", "3")
    cell = Cell.build(load_cell_config(preset), num_devices=20, seed=3)
    description = describe_cell(cell, name=preset)
    shown = [line.split() for line in output.splitlines()]
    assert shown[0] == f"{preset}: {cell.config.description}".split()
    for table in (description.budget_table, description.fleet_table):
        assert table.title.split() in shown
        assert [word for heading in table.headings for word in heading.split()] in shown
        for row in table.rows:
            assert " ".join(row).split() in shown
    assert description.facts in output


@pytest.mark.parametrize("preset", ["umi-3.5ghz", "paper"])
def test_json_is_what_python_describes(preset):
    cell = Cell.build(load_cell_config(preset), num_devices=20, seed=3)
    words = ("-n", "20", "--seed", "3", "--json")
    assert json.loads(run(preset, *words)) == describe_cell(cell, name=preset).as_json()
    small = describe_cell(cell, name=preset, model_bits=64.0).as_json()
    assert json.loads(run(preset, *words, "--model-bits", "64")) == small


def test_a_picture_is_written_and_named(tmp_path):
    pytest.importorskip("matplotlib")
    picture = tmp_path / "cell.png"
    assert "Picture:" in run("umi-3.5ghz", "-n", "5", "--plot", str(picture))
    assert picture.read_bytes().startswith(b"\x89PNG")
    json.loads(run("umi-3.5ghz", "-n", "5", "--json", "--plot", str(picture)))


def test_settings_are_overridden_from_the_command_line():
    data = json.loads(run("umi-3.5ghz", "-s", "num_blocks=3", "-s", "channel.fading.kind=none", "--json"))
    assert data["num_blocks"] == 3
    assert data["link_budget"][0]["fading_db"] == pytest.approx(0.0, abs=1e-9)


def test_warnings_are_shown():
    assert "warning: bandwidth_hz is 0.18 Hz" in " ".join(
        run("umi-3.5ghz", "-s", "bandwidth_hz=0.18").split()
    )


def test_a_mistake_is_one_line_and_exit_code_two():
    done = subprocess.run(
        [sys.executable, "-m", "fedwave", "cell", "umi-35ghz"],
        capture_output=True,
        text=True,
        check=False,
        env=ENVIRONMENT,
    )
    assert done.returncode == 2
    assert done.stderr.startswith('error: there is no cell preset "umi-35ghz". Did you mean "umi-3.5ghz"?')
    assert done.stderr.count("\n") == 1


def test_the_command_needs_no_deep_learning_framework():
    code = "import sys, fedwave.cli.app; assert not {'torch', 'matplotlib'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, env=ENVIRONMENT)
