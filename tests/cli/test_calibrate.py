"""``fedwave calibrate``: a cell file printed or written."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from fedwave.cli.app import app
from fedwave.errors import ConfigError
from fedwave.wireless.settings.load import load_cell_config

MEASURED = "state,watts,dbm\nsend,1.0,0\nsend,1.45,20\nwait,0.02,\n"


def test_the_file_that_is_written_is_what_is_printed_and_is_a_cell(tmp_path: Path) -> None:
    (tmp_path / "watts.csv").write_text(MEASURED)
    words = ["calibrate", str(tmp_path / "watts.csv"), "--cell", "umi-3.5ghz"]
    printed = CliRunner().invoke(app, words, catch_exceptions=False).output
    path = tmp_path / "cell.toml"
    said = CliRunner().invoke(app, [*words, "-o", str(path)], catch_exceptions=False).output
    assert said == f"Cell file: {path}\n"
    assert path.read_text() == printed
    cell = load_cell_config(path)
    assert cell.radio.amplifier_efficiency == pytest.approx(0.22)
    assert cell.idle_power_w == 0.02


def test_a_wrong_preset_is_said_before_anything_is_written(tmp_path: Path) -> None:
    (tmp_path / "watts.csv").write_text(MEASURED)
    words = ["calibrate", str(tmp_path / "watts.csv"), "-c", "umi", "-o", str(tmp_path / "cell.toml")]
    with pytest.raises(ConfigError, match='no cell preset "umi"'):
        CliRunner().invoke(app, words, catch_exceptions=False)
    assert not (tmp_path / "cell.toml").exists()
