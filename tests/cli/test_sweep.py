"""`fedwave sweep` and `fedwave run --seeds`: many runs, one display, one table."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from fedwave.cli.app import app
from fedwave.cli.sweep import _display
from fedwave.errors import ConfigError, DivergenceError
from fedwave.runs.batch import Progress
from fedwave.runs.sweep import plan_sweep
from tests.runs.test_sweep import SMALL

WORDS = [word for one in SMALL for word in ("-s", one)]


def test_several_seeds_are_run_skipped_and_averaged(tmp_path: Path) -> None:
    words = ["run", "digits/nufm", *WORDS, "--jobs", "1", "--out", str(tmp_path), "--seeds"]
    first = CliRunner().invoke(app, [*words, "0"])
    assert first.exit_code == 0, first.output
    assert f"1 run, 0 made before: {tmp_path}" in first.stdout
    assert "1 of 1 runs, done: " in first.stderr
    both = CliRunner().invoke(app, [*words, "0-1"])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["digits-nufm-seed0", "digits-nufm-seed1"]
    table, note, count = both.stdout.splitlines()[1:]
    assert re.match(r"NUFM +digits +2 +2 +[\d.]+ ± [\d.]+", table)
    assert note == "Means over seeds with 95 % intervals."
    assert count == f"2 runs, 1 made before: {tmp_path}"


def test_a_sweep_has_a_row_for_each_value(tmp_path: Path) -> None:
    words = ["sweep", "digits/nufm", *WORDS, "-s", "algorithm.inner_lr=0.01,0.02", "--out", str(tmp_path)]
    done = CliRunner().invoke(app, [*words, "--jobs", "1", "-q"])
    assert done.exit_code == 0, done.output
    rows = [line.split("  ")[0] for line in done.stdout.splitlines()[1:3]]
    assert rows == ["NUFM (inner_lr=0.01)", "NUFM (inner_lr=0.02)"]
    assert done.stderr == ""


def test_a_run_that_diverges_is_said_at_the_end(tmp_path: Path) -> None:
    words = ["sweep", "digits/nufm", *WORDS, "-s", "algorithm.meta_lr=3e38,0.1", "--out", str(tmp_path)]
    done = CliRunner().invoke(app, [*words, "--jobs", "1", "-q"])
    assert isinstance(done.exception, DivergenceError)
    assert str(done.exception).startswith("1 of 2 runs diverged, the first in ")
    assert "NUFM" in done.stdout


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (
            ["--seeds", "0-1", "--seed", "3"],
            "--seed and --seeds exclude each other, got 3 and 0-1. Keep one.",
        ),
        (["--jobs", "2"], "--jobs says how many of --seeds are run at once, got 2 without --seeds."),
    ],
)
def test_options_that_exclude_each_other_are_one_line(words: list[str], why: str) -> None:
    done = CliRunner().invoke(app, ["run", "digits/nufm", *words])
    assert isinstance(done.exception, ConfigError)
    assert str(done.exception) == why


def test_a_terminal_shows_one_bar_that_follows_the_folders(tmp_path: Path) -> None:
    runs = plan_sweep("digits/nufm", fixed=SMALL, seeds=(0, 1), out=tmp_path)
    file = io.StringIO()
    console = Console(file=file, force_terminal=True, width=80)
    with _display(console, runs) as tell:
        tell(Progress(0, 1, 9.0, None))  # one of two is missing
        runs[0].folder.mkdir()
        (runs[0].folder / "rounds.csv").write_text("round\n0\n1\n")
        (runs[1].folder).mkdir()
        (runs[1].folder / "rounds.csv").write_text("round\n0\n")
    assert "1 of 2 runs" in file.getvalue()
    assert "3/4" in file.getvalue()
