"""Finished runs are kept to the bit, found by key, never half written; figures are those of the rounds."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fedwave.errors import RunError
from fedwave.reproduce.figures import figures_of
from fedwave.reproduce.result import Result, Results


def made(**changes) -> Result:
    curves = {"heldout_loss": [0.1 + 0.2, math.nan, 1e-300], "energy_j": [1.0, 2.0, 4.0]}
    given = {
        "key": "k", "command": "fedwave run it", "made_with": {}, "num_rounds": 3, "seconds": 1.5,
        "num_remembered": 0, "figures": {"loss": 1 / 3, "delay_s": math.nan}, "curves": curves, "probes": {},
    }  # fmt: skip
    return Result(**{**given, **changes})


def test_a_result_comes_back_to_the_bit(tmp_path) -> None:
    results = Results(tmp_path / "runs")
    results.add(made(probes={"3": {"one step": {"accuracy": 0.5}}}))
    found = results.find("k", is_probed=True)
    assert found is not None
    np.testing.assert_array_equal(found.curve("heldout_loss"), [0.1 + 0.2, math.nan, 1e-300])
    np.testing.assert_array_equal(found.curve("delay_s"), [math.nan] * 3)
    assert found.figures["loss"] == 1 / 3
    assert math.isnan(found.figures["delay_s"])
    assert results.find("other") is None
    assert found.probes["3"]["one step"]["accuracy"] == 0.5
    assert [path.name for path in (tmp_path / "runs").iterdir()] == ["k.json"]


def test_the_accuracy_of_a_round_is_that_of_the_end_or_of_a_probe() -> None:
    probes = {"2": {"one step": {"accuracy": 0.5}, "no adaptation": {"accuracy": 0.1}}}
    result = made(figures={"accuracy": 0.7}, probes=probes)
    assert result.accuracy_after(3) == 0.7
    assert result.accuracy_after(2) == 0.5
    assert math.isnan(result.accuracy_after(1))


def test_a_run_without_probes_does_not_serve_where_they_are_asked_for(tmp_path) -> None:
    results = Results(tmp_path)
    results.add(made())
    assert results.find("k", is_probed=True) is None


def test_gathered_runs_are_found_as_before_and_a_new_one_replaces_its_former(tmp_path) -> None:
    results = Results(tmp_path / "runs")
    results.add(made(probes={"3": {"one step": {"accuracy": 0.5}}}))
    results.add(made(key="a"))
    results.gather()
    assert [path.name for path in sorted(tmp_path.rglob("*"))] == ["runs", "runs.jsonl"]
    again = Results(tmp_path / "runs")
    found = again.find("k", is_probed=True)
    assert found is not None
    np.testing.assert_array_equal(found.curve("heldout_loss"), [0.1 + 0.2, math.nan, 1e-300])
    assert again.find("a", is_probed=True) is None
    before = (tmp_path / "runs.jsonl").read_bytes()
    again.gather()
    assert (tmp_path / "runs.jsonl").read_bytes() == before
    again.add(made(key="a", seconds=9.0))
    assert again.find("a").seconds == 9.0
    again.gather()
    after = (tmp_path / "runs.jsonl").read_bytes().splitlines()
    assert after[1] == before.splitlines()[1]  # the lines are in order of their keys
    assert Results(tmp_path / "runs").find("a").seconds == 9.0


def test_a_damaged_line_is_named(tmp_path) -> None:
    results = Results(tmp_path / "runs")
    results.add(made())
    results.gather()
    with (tmp_path / "runs.jsonl").open("a") as file:
        file.write('{"key": "half')
    with pytest.raises(RunError, match=r"runs\.jsonl, line 2: .* Delete it to run it anew"):
        Results(tmp_path / "runs").find("k")


def test_figures_are_those_of_the_rounds() -> None:
    rounds = np.arange(1.0, 24.0)
    columns = {
        "heldout_loss": 1.0 / rounds,
        "heldout_accuracy": rounds / 100,
        "train_loss": 2.0 / rounds,
        "energy_j": np.where(rounds > 3, np.nan, rounds**2),
        "num_received": np.full(23, np.nan),
        "cpu_time_s": rounds,
        "falls": np.array([0.0, 2.0, 1.0]),
    }
    found = figures_of(columns, is_timed=True)
    assert (found["loss"], found["accuracy"]) == (1 / 23, 0.23)
    assert (found["loss_19"], found["train_loss_19"]) == (1 / 19, 2 / 19)
    assert found["energy_j"] == pytest.approx(14 / 3)
    assert (found["falls"], found["cpu_time_s"]) == (3.0, 12.0)
    for name in ("received", "delay_s", "accuracy_pooled"):
        assert math.isnan(found[name])
    assert math.isnan(figures_of(columns, is_timed=False)["cpu_time_s"])
    short = {name: values[:18] for name, values in columns.items()}
    assert math.isnan(figures_of(short, is_timed=True)["loss_19"])


def test_a_failed_write_leaves_nothing_behind(tmp_path) -> None:
    with pytest.raises(TypeError):
        Results(tmp_path).add(made(made_with={"torch": object()}))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("text", ["", "{", '{"key": 1}', '{"curves": {"a": ["x"]}, "figures": {}}', "[1]"])
def test_a_damaged_result_is_one_line_with_a_way_out(tmp_path, text) -> None:
    (tmp_path / "k.json").write_text(text)
    with pytest.raises(
        RunError, match=r"cannot read the finished run .*k\.json: .* Delete it to run it anew"
    ):
        Results(tmp_path).find("k")
