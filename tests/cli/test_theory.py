"""`fedwave theory` on a run and on settings."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from fedwave.cli.app import app
from fedwave.experiments.load import experiment_to_toml
from fedwave.runs.run import run_experiment
from fedwave.runs.theory_rows import read_snapshots
from tests.runs.test_theory_snapshots import small

LITTLE = ["--devices", "3", "--iterations", "1", "--probes", "1"]


def test_a_run_keeps_its_table_and_picture_and_its_report_shows_them(tmp_path: Path) -> None:
    run = str(run_experiment(small(num_rounds=2), tmp_path / "run").path)
    done = CliRunner().invoke(app, ["theory", run, *LITTLE])
    assert done.exit_code == 0, done.output
    constants, sayings, *_ = done.stdout.split("\n\n")
    assert constants.splitlines()[0].split() == ["before", "round", "0", "2"]
    assert constants.splitlines()[1].startswith("L: smoothness")
    assert "fall of F seen" in sayings
    assert "At 2 of 2 models the corrected penalties" in done.stdout
    assert [one.round for one in read_snapshots(tmp_path / "run")] == [0, 2]
    assert (tmp_path / "run" / "theory.png").read_bytes().startswith(b"\x89PNG")
    page = tmp_path / "page.html"
    assert CliRunner().invoke(app, ["report", run, "--out", str(page)]).exit_code == 0
    text = page.read_text(encoding="utf-8")
    assert "What the theory says" in text
    assert "correlation of ‖g_i‖ with the gain" in text


def test_settings_are_played_and_leave_nothing_unless_asked(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(experiment_to_toml(small()), encoding="utf-8")
    words = ["theory", str(file), *LITTLE, "--rounds", "2", "--every", "2", "-s", "seed=3"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    assert done.stdout.splitlines()[0].split() == ["before", "round", "0", "2"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine.toml"]
    done = CliRunner().invoke(app, [*words, "--out", str(tmp_path / "out")])
    assert done.stdout.splitlines()[-1] == f"Table: {tmp_path / 'out' / 'theory.csv'}  (picture: theory.png)"
    assert len(read_snapshots(tmp_path / "out")) == 2


@pytest.mark.parametrize("words", [["-s", "seed=1"], ["--rounds", "3"], ["--every", "3"]])
def test_what_is_for_presets_is_refused_with_a_run(tmp_path: Path, words: list[str]) -> None:
    (tmp_path / "config.toml").write_text("")
    done = CliRunner().invoke(app, ["theory", str(tmp_path), *words])
    option = "--set" if words[0] == "-s" else words[0]
    assert str(done.exception).startswith(f"{option} is for a preset, got it with the run {tmp_path}")
