"""`fedwave longterm`: table, files and errors, on a short run."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fedwave.cli.app import app
from fedwave.longterm.comparison import compare_long_term
from fedwave.runs.run import run_experiment
from tests.cli.in_process import Command
from tests.longterm.recorded_runs import recorded
from tests.runs.small_runs import tiny

WORDS = ["--budget", "0.0015", "--steps", "4", "-p", "myopic", "-p", "drift-plus-penalty", "--v", "0.002"]


@pytest.fixture(scope="module")
def run_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return recorded(tmp_path_factory.mktemp("recorded") / "run")


def test_a_table_a_picture_and_a_csv(run_path: Path, tmp_path: Path) -> None:
    picture, table = tmp_path / "long.png", tmp_path / "long.csv"
    words = ["longterm", str(run_path), *WORDS, "--plot", str(picture), "--csv", str(table)]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0
    lines = done.stdout.splitlines()
    assert lines[0] == "8 rounds, 6 devices, 0.0015 J a round for each"
    starts = ("planner", "bound of all", "this run (auto)", "myopic", "drift-plus-penalty, V = 0.002")
    assert [line.startswith(start) for line, start in zip(lines[1:-1], starts, strict=True)] == [True] * 5
    assert lines[-1] == f"Picture: {picture}"
    assert picture.read_bytes().startswith(b"\x89PNG")
    expected = compare_long_term(
        run_path, budget_j=0.0015, planners=("myopic", "drift-plus-penalty"), v=[0.002], num_steps=4
    ).rows()
    with table.open() as file:
        rows = list(csv.DictReader(file))
    assert [row["planner"] for row in rows] == [row["planner"] for row in expected]
    assert [row["overdraw_j"] for row in rows] == ["", *(str(row["overdraw_j"]) for row in expected[1:])]
    myopic = expected[2]
    assert f"{myopic['utility']:.4g}" in lines[4]
    assert f"{myopic['overdraw_j']:+.3g} J" in lines[4]
    assert f"{100 * float(str(myopic['share_of_bound'])):.1f} %" in lines[4]


def test_json_has_the_same_and_draws_nothing(
    run_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["longterm", str(run_path), *WORDS, "--json"])
    said = json.loads(done.stdout)
    assert (said["budget_j"], said["num_rounds"], said["num_devices"]) == (0.0015, 8, 6)
    assert [row["planner"] for row in said["planners"]] == ["this run (auto)", "myopic", "drift-plus-penalty"]
    assert said["bound"] > 0
    assert len(said["bound_prices_per_j"]) == 6
    assert not list(tmp_path.iterdir())


def test_runs_that_cannot_be_bounded_are_refused_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command = Command(monkeypatch, capsys, tmp_path)
    run_experiment(tiny(num_rounds=1), tmp_path / "plain")
    for words, why in (
        (["plain"], "error: plain has no radio cell, so no joules. Give a run over a cell.\n"),
        (["none"], "error: none is not a run folder: it has no config.toml. Give the folder of a run.\n"),
        (["plain", "--steps", "0"], None),
    ):
        done = command("longterm", *words)
        assert done.code != 0
        assert "Traceback" not in done.stderr
        if why is not None:
            assert done.stderr == why
