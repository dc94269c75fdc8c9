"""`fedwave presets` and `fedwave new`: what to start from."""

from __future__ import annotations

from pathlib import Path

from typer.testing import CliRunner

from fedwave.cli.app import app
from fedwave.errors import FedwaveError
from fedwave.experiments import load_experiment, preset_names


def test_presets_are_listed_and_printed(tmp_path: Path) -> None:
    listed = CliRunner().invoke(app, ["presets"], env={"COLUMNS": "120"}).stdout
    assert all(name in listed for name in preset_names())
    text = CliRunner().invoke(app, ["presets", "digits/nufm"]).stdout
    (tmp_path / "own.toml").write_text(text)
    assert load_experiment(str(tmp_path / "own.toml")) == load_experiment("digits/nufm")


def test_a_new_project_is_written_once(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["new", str(tmp_path / "mine")])
    assert done.exit_code == 0
    assert done.stdout.splitlines() == [
        f"Wrote {tmp_path / 'mine'}/: README.md, experiment.toml, cell.toml, my_model.py",
        f"Start with: cd {tmp_path / 'mine'} && fedwave run experiment.toml",
    ]
    again = CliRunner().invoke(app, ["new", str(tmp_path / "mine")])
    assert isinstance(again.exception, FedwaveError)
