"""Finished runs are kept to the bit, found again by key and length, and never half written."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fedwave.errors import RunError
from fedwave.reproduce.result import Result, Results


def made(**changes) -> Result:
    columns = {"heldout_loss": [0.1 + 0.2, math.nan, 1e-300], "energy_j": [1.0, 2.0, 4.0]}
    given = {
        "key": "k", "command": "fedwave run it", "made_with": {}, "num_rounds": 3, "seconds": 1.5,
        "num_remembered": 0, "columns": columns, "probes": {},
    }  # fmt: skip
    return Result(**{**given, **changes})


def test_a_result_comes_back_to_the_bit(tmp_path) -> None:
    results = Results(tmp_path / "runs")
    results.add(made(probes={"3": {"one step": {"accuracy": 0.5}}}))
    found = results.find("k", num_rounds=3, is_probed=True)
    assert found is not None
    np.testing.assert_array_equal(found.column("heldout_loss"), [0.1 + 0.2, math.nan, 1e-300])
    assert found.probes["3"]["one step"]["accuracy"] == 0.5
    assert [path.name for path in (tmp_path / "runs").iterdir()] == ["k.json"]


def test_a_longer_run_serves_as_a_shorter_one_and_not_the_other_way(tmp_path) -> None:
    results = Results(tmp_path)
    results.add(made())
    shorter = results.find("k", num_rounds=2)
    assert shorter is not None
    assert (shorter.num_rounds, shorter.columns["energy_j"]) == (2, [1.0, 2.0])
    assert results.find("k", num_rounds=4) is None
    assert results.find("other", num_rounds=1) is None


def test_a_run_without_probes_does_not_serve_where_they_are_asked_for(tmp_path) -> None:
    results = Results(tmp_path)
    results.add(made())
    assert results.find("k", num_rounds=3, is_probed=True) is None


def test_gathered_runs_are_found_as_before_and_a_new_one_replaces_its_former(tmp_path) -> None:
    results = Results(tmp_path / "runs")
    results.add(made(probes={"3": {"one step": {"accuracy": 0.5}}}))
    results.add(made(key="a"))
    results.gather()
    assert [path.name for path in sorted(tmp_path.rglob("*"))] == ["runs", "runs.jsonl"]
    again = Results(tmp_path / "runs")
    found = again.find("k", num_rounds=3, is_probed=True)
    assert found is not None
    np.testing.assert_array_equal(found.column("heldout_loss"), [0.1 + 0.2, math.nan, 1e-300])
    assert again.find("a", num_rounds=3, is_probed=True) is None
    before = (tmp_path / "runs.jsonl").read_bytes()
    again.gather()
    assert (tmp_path / "runs.jsonl").read_bytes() == before
    again.add(made(key="a", seconds=9.0))
    assert again.find("a", num_rounds=3).seconds == 9.0
    again.gather()
    after = (tmp_path / "runs.jsonl").read_bytes().splitlines()
    assert after[1] == before.splitlines()[1]  # the lines are in order of their keys
    assert Results(tmp_path / "runs").find("a", num_rounds=3).seconds == 9.0


def test_a_damaged_line_is_named(tmp_path) -> None:
    results = Results(tmp_path / "runs")
    results.add(made())
    results.gather()
    with (tmp_path / "runs.jsonl").open("a") as file:
        file.write('{"key": "half')
    with pytest.raises(RunError, match=r"runs\.jsonl, line 2: .* Delete it to run it anew"):
        Results(tmp_path / "runs").find("k", num_rounds=1)


def test_figures_of_columns() -> None:
    result = made()
    assert result.after("energy_j", 2) == 2.0
    assert math.isnan(result.after("energy_j", 4))
    assert result.mean("energy_j") == pytest.approx(7 / 3)
    assert result.mean("heldout_loss") == pytest.approx(0.15)
    assert math.isnan(result.mean("absent"))


def test_a_failed_write_leaves_nothing_behind(tmp_path) -> None:
    with pytest.raises(TypeError):
        Results(tmp_path).add(made(made_with={"torch": object()}))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("text", ["", "{", '{"key": 1}', '{"columns": {"a": ["x"]}}', "[1]"])
def test_a_damaged_result_is_one_line_with_a_way_out(tmp_path, text) -> None:
    (tmp_path / "k.json").write_text(text)
    with pytest.raises(
        RunError, match=r"cannot read the finished run .*k\.json: .* Delete it to run it anew"
    ):
        Results(tmp_path).find("k", num_rounds=1)
