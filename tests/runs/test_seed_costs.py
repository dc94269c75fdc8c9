"""A line for each run, by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from fedwave.runs.seed_costs import seed_costs, write_seed_costs
from tests.runs.paid_runs import OURS, paid_runs


def test_a_line_has_what_a_run_took_in_all_by_phases_and_until_the_target(tmp_path: Path) -> None:
    ours, late = paid_runs("a", {0: (2.0, 10.0)}), paid_runs("b", {0: (3.0, 12.0)})
    for run in (*ours, *late):
        run.columns["upload_energy_j"] = np.array([1.0, 2.0])
        run.columns["compute_energy_j"] = np.array([0.5, 0.25])
        run.columns["downlink_energy_j"] = np.array([3.0, 1.0])
        run.columns["num_computed"] = np.array([5, 6])
        run.columns["num_received"] = np.array([2, 3])
    late[0].columns["heldout_accuracy"] = np.array([0.1, 0.2])
    first, second = seed_costs([*ours, *late], target=0.5)
    assert first == {
        "run": "a", "seed": 0, "rounds": 2, "accuracy": 0.8, "asked": 11.0, "uploads": 5.0, "time_s": 2.0,
        "energy_j": 10.0, "uploading_j": 3.0, "computing_j": 0.75, "listening_j": 4.0, "other_j": 2.25,
        "target": 0.5, "target_time_s": 1.0, "target_energy_j": 5.0,
    }  # fmt: skip
    assert (second["accuracy"], second["target_time_s"], second["target_energy_j"]) == (0.2, "", "")
    lines = write_seed_costs([first, second], tmp_path / "seeds.csv").read_text().splitlines()
    assert lines[0] == ",".join(first)
    assert lines[1] == "a,0,2,0.8,11,5,2,10,3,0.75,4,2.25,0.5,1,5"
    assert lines[2].endswith(",0.5,,")


def test_seeds_of_one_name_come_together() -> None:
    runs = [*paid_runs("a", OURS), *paid_runs("b", OURS)]
    for run in runs:
        for name in (
            "upload_energy_j",
            "compute_energy_j",
            "downlink_energy_j",
            "num_computed",
            "num_received",
        ):
            run.columns[name] = np.zeros(2)
    rows = seed_costs(runs[::-1], target=0.8)
    assert [row["run"] for row in rows] == ["b"] * 4 + ["a"] * 4
    assert sorted(row["seed"] for row in rows[:4]) == [0, 1, 2, 3]
