"""Means over seeds by hand: sums, Student's quantile from a table, and straight lines between points."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fedwave.explore.seed_means import seed_means
from fedwave.runs.compare import FinishedRun, read_run
from tests.runs.written_runs import write_run

STUDENT_2 = 4.302652729696  # 97.5 % with two degrees of freedom


def test_the_seeds_of_a_setting_are_averaged_and_places_are_kept(tmp_path: Path) -> None:
    ours = [
        write_run(tmp_path / f"a{seed}", "A", values, over_cell=True, seed=seed)
        for seed, values in enumerate(([0.1, 0.5], [0.2, 0.6], [0.6, 0.7]))
    ]
    other = write_run(tmp_path / "b", "B", [0.3, 0.4], seed=0)
    found = seed_means([ours[0], None, other, *ours[1:]])
    assert found["groups"] == [{"name": "A", "runs": [0, 3, 4]}, {"name": "B", "runs": [2]}]
    assert found["reason"] == ""
    first, second = found["curves"]["rounds"]["metric"]
    assert (first["group"], first["seeds"], second["group"], second["seeds"]) == (0, 3, 1, 1)
    assert first["x"] == [1.0, 2.0]
    assert first["mean"] == pytest.approx([0.3, 0.6])
    spread = np.array([np.std([0.1, 0.2, 0.6], ddof=1), np.std([0.5, 0.6, 0.7], ddof=1)])
    half = STUDENT_2 * spread / np.sqrt(3)
    assert first["high"] == pytest.approx([0.3 + half[0], 0.6 + half[1]])
    assert first["low"] == pytest.approx([0.3 - half[0], 0.6 - half[1]])
    assert second["mean"] == pytest.approx([0.3, 0.4])
    (by_joules,) = found["curves"]["cumulative_energy_j"]["metric"]  # B has no cell
    assert by_joules["x"] == [100.0, 200.0]
    assert by_joules["mean"] == pytest.approx([0.3, 0.6])
    assert found["curves"]["rounds"]["train_loss"][0]["mean"] == [1.0, 2.0]
    assert found["curves"]["rounds"]["heldout_loss"][0]["mean"] == [2.0, 2.0]


def test_costs_are_averaged_where_all_seeds_have_come(tmp_path: Path) -> None:
    write_run(tmp_path / "0", "A", [0.0, 1.0, 2.0], over_cell=True, seed=0)
    write_run(tmp_path / "1", "A", [10.0, 20.0], over_cell=True, seed=1)
    table = tmp_path / "1" / "rounds.csv"
    table.write_text(table.read_text().replace(",10,100\n", ",15,150\n").replace(",20,200\n", ",25,250\n"))
    found = seed_means([read_run(tmp_path / "0"), read_run(tmp_path / "1")])
    (mean,) = found["curves"]["cumulative_delay_s"]["metric"]
    assert mean["x"] == [15.0, 20.0, 25.0]  # the first is at 10, 20, 30 s, the second at 15 and 25 s
    assert mean["mean"] == pytest.approx([(0.5 + 10) / 2, (1 + 15) / 2, (1.5 + 20) / 2])


def test_nothing_is_averaged_of_one_run_twice_or_of_none(tmp_path: Path) -> None:
    run = write_run(tmp_path / "a", "A", [0.1])
    found = seed_means([run, read_run(tmp_path / "a")])
    assert found["groups"] == []
    assert "are the same run" in found["reason"]
    assert seed_means([None])["groups"] == []
    unstarted = FinishedRun(run.path, run.experiment, {"round": np.zeros(0, dtype=np.int64)})
    assert seed_means([unstarted])["curves"]["rounds"]["metric"] == []
