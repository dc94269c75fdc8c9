"""`fedwave explore` without a page: numbers as JSON, and words that are refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fedwave.allocation import METHODS
from fedwave.cli.app import app
from fedwave.errors import FedwaveError
from tests.runs.written_runs import write_run


def test_json_prints_the_numbers_without_a_server() -> None:
    done = CliRunner().invoke(app, ["explore", "paper", "--json", "-n", "25", "--seed", "4"])
    assert done.exit_code == 0
    printed = json.loads(done.stdout)
    assert printed["view"]["num_devices"] == 25
    assert printed["view"]["seed"] == 4
    assert set(printed["methods"]) == set(METHODS)
    assert "25 devices" in printed["facts"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nowhere"], "is no cell file"),
        (["missing.toml"], "cannot read the cell file"),
        (["."], "is not a run folder"),
    ],
)
def test_wrong_words_are_refused(
    words: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # a folder without runs, which the one that tests run in may have
    done = CliRunner().invoke(app, ["explore", *words, "--json"])
    assert isinstance(done.exception, FedwaveError)
    assert message in str(done.exception)


def test_runs_alone_have_no_json(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", "a", [0.5])
    done = CliRunner().invoke(app, ["explore", str(run.path), "--json"])
    assert "Name a cell" in str(done.exception)
