"""The short examples run as they stand."""

from __future__ import annotations

import csv
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

from fedwave import read_run

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_own_data_and_model_runs(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    name = "own_data_and_model"
    monkeypatch.syspath_prepend(str(EXAMPLES))
    sys.modules.pop(name, None)
    __import__(name)
    sys.modules[name].main()
    assert "held-out accuracy" in capsys.readouterr().out


def test_own_server_runs_with_numpy_and_scipy_alone() -> None:
    source = Path(__file__).parents[2] / "src"
    code = (
        f"import runpy, sys; sys.path.insert(0, {str(source)!r}); "
        f"runpy.run_path({str(EXAMPLES / 'own_server.py')!r}, run_name='__main__'); "
        "print([name for name in ('torch', 'pydantic', 'fedwave.simulation') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True
    )
    *plans, loaded = done.stdout.splitlines()
    assert sum("uploads on block" in line for line in plans) == 12  # four blocks in each of three rounds
    assert sum("optimal, the round takes" in line for line in plans) == 3
    assert loaded == "[]"


def test_every_example_is_run_by_a_test() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.py")} == {
        "day_on_batteries",
        "own_data_and_model",
        "own_server",
        "plain_nufm",  # in a file of its own
    }


def test_a_day_on_batteries_leaves_its_tables_and_picture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    sys.modules.pop("day_on_batteries", None)
    day = importlib.import_module("day_on_batteries")
    few = ["num_rounds=6", "model.channels=[4]", "cell.battery.initial_charge=0.38"]
    words = ["--seeds", "3", "--out", str(tmp_path / "day"), "--csv", str(tmp_path / "seeds.csv")]
    day.main([*words, *(word for change in few for word in ("-s", change))])
    with (tmp_path / "seeds.csv").open() as file:
        rows = list(csv.DictReader(file))
    runs = [read_run(tmp_path / "day" / f"{scheme}-seed3") for scheme in day.SCHEMES]
    assert [row["run"] for row in rows] == [run.experiment.name for run in runs]
    for row, run in zip(rows, runs, strict=True):
        assert float(row["energy_j"]) == pytest.approx(run.last("cumulative_energy_j"), rel=1e-5)
        assert float(row["accuracy_24h"]) == pytest.approx(100 * run.heldout_metric[-1], rel=1e-5)
        assert float(row["accuracy_12h"]) == pytest.approx(100 * run.heldout_metric[2], rel=1e-5)
        dead = 30 - run.curve("num_awake")
        assert int(row["most_dead"]) == dead.max()
        assert float(row["dead_device_hours"]) == pytest.approx(dead[:-1].sum() / 6, rel=1e-5)
    assert any(row["first_dead_h"] for row in rows)  # nobody starts with much
    printed = capsys.readouterr().out
    assert all(run.experiment.name in printed for run in runs)
    assert (tmp_path / "day" / "day.png").exists()
    day.main(words)  # what is there is read again
    assert capsys.readouterr().out == printed
