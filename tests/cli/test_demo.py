"""`fedwave demo`: its texts, and the whole of it on few rounds."""

from __future__ import annotations

import csv
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from fedwave.cli.demo import INTRODUCTION, NEXT
from fedwave.experiments import preset_names
from fedwave.wireless.settings.presets import CELL_PRESETS
from tests.cli.in_process import Command
from tools.docs.pages import ROOT


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Command:
    return Command(monkeypatch, capsys, tmp_path)


def test_what_it_prints_fits_80_columns_and_names_what_there_is() -> None:
    for text in (INTRODUCTION.replace("[bold]", "").replace("[/bold]", ""), NEXT):
        assert max(map(len, text.splitlines())) <= 80
    tried = re.findall(r"^  fedwave (\w+) (\S+)", NEXT, re.MULTILINE)
    assert len(tried) == 3
    assert dict(tried)["run"] in preset_names()
    assert dict(tried)["cell"] in CELL_PRESETS


def test_it_goes_on_and_leaves_nobodys_files(command: Command) -> None:
    words = ("demo", "-s", "num_rounds=1", "--jobs", "1", "--seeds")
    (command.folder / "demo").mkdir()
    (command.folder / "demo" / "mine.txt").write_text("mine")
    first = command(*words, "4")
    assert first.code == 0, first.stderr
    assert "5 schemes, 1 seed, 1 round." in first.stdout
    assert "5 of 5 runs, done: demo/digits-ru-random-seed4" in first.stderr
    both = command(*words, "4-5", "-q")
    assert both.code == 0, both.stderr
    assert "5 schemes, 2 seeds, 1 round." in both.stdout
    assert "Threshold: 1.0 × (1.0–1.0) the seconds" in both.stdout
    assert both.stderr == ""
    assert (command.folder / "demo" / "mine.txt").read_text() == "mine"
    assert (command.folder / "demo" / "comparison.png").stat().st_size > 10_000
    with (command.folder / "demo" / "seeds.csv").open() as file:
        rows = [(row["run"], row["seed"]) for row in csv.DictReader(file)]
    names = ("URAL (optimal)", "Threshold", "Value-rate", "NUFM-Greedy", "RU-Random")
    assert rows == [(name, seed) for name in names for seed in ("4", "5")]
    other = command("demo", "-s", "num_rounds=2", "--jobs", "1", "--seeds", "4")
    assert other.code == 2
    assert other.stderr == (
        "error: demo/digits-ural-seed4 holds a run of other settings: num_rounds. "
        "Put these runs elsewhere: --out demo-2.\n"
    )


def test_a_run_that_diverges_is_said_without_a_picture(command: Command) -> None:
    done = command(
        "demo", "-s", "num_rounds=2", "-s", "algorithm.meta_lr=3e38", "--jobs", "1", "--seeds", "0"
    )
    assert done.code == 4
    assert done.stderr.splitlines()[-1].startswith(
        "error: 5 of 5 runs diverged, the first in demo/digits-ural"
    )
    assert not (command.folder / "demo" / "comparison.png").exists()


@pytest.mark.slow
def test_it_runs_in_processes_of_its_own(tmp_path: Path) -> None:
    """Two seeds of two rounds, as `make demo` has them."""
    words = [sys.executable, "-m", "fedwave", "demo", "--seeds", "0-1", "-s", "num_rounds=2", "--jobs", "2"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    assert "Try next" in done.stdout
    assert (tmp_path / "demo" / "comparison.png").exists()
    assert len(list((tmp_path / "demo").glob("*-seed*"))) == 10  # five schemes
