"""Finished runs are kept to the bit, found by key, never half written, and gathered by several at once."""

from __future__ import annotations

import math
import threading

import numpy as np
import pytest

from fedwave.errors import RunError
from fedwave.runs.kept_runs import KeptRun, KeptRuns, curve_of
from fedwave.runs.lock import locked


def made(**changes) -> KeptRun:
    curves = {"heldout_loss": [0.1 + 0.2, math.nan, 1e-300], "energy_j": [1.0, 2.0, 4.0]}
    given = {
        "key": "k", "command": "fedwave run it", "made_with": {}, "num_rounds": 3, "seconds": 1.5,
        "num_remembered": 0, "figures": {"loss": 1 / 3, "delay_s": math.nan}, "curves": curves,
        "test_readings": {},
    }  # fmt: skip
    return KeptRun(**{**given, **changes})


def test_a_result_comes_back_to_the_bit(tmp_path) -> None:
    results = KeptRuns(tmp_path / "runs")
    results.add(made(test_readings={"3": {"one step": {"accuracy": 0.5}}}))
    found = results.find("k", with_readings=True)
    assert found is not None
    np.testing.assert_array_equal(found.curve("heldout_loss"), [0.1 + 0.2, math.nan, 1e-300])
    np.testing.assert_array_equal(found.curve("delay_s"), [math.nan] * 3)
    assert found.figures["loss"] == 1 / 3
    assert math.isnan(found.figures["delay_s"])
    assert results.find("other") is None
    assert found.test_readings["3"]["one step"]["accuracy"] == 0.5
    assert [path.name for path in (tmp_path / "runs").iterdir()] == ["k.json"]


def test_a_run_without_test_readings_does_not_serve_where_they_are_asked_for(tmp_path) -> None:
    results = KeptRuns(tmp_path / "new" / "runs")
    results.add(made())
    assert results.find("k", with_readings=True) is None
    assert results.find("k") is not None


def test_gathered_runs_are_found_as_before_and_a_new_one_replaces_its_former(tmp_path) -> None:
    results = KeptRuns(tmp_path / "runs")
    results.add(made(test_readings={"3": {"one step": {"accuracy": 0.5}}}))
    results.add(made(key="a"))
    results.gather()
    assert [path.name for path in sorted(tmp_path.rglob("*"))] == ["runs", ".lock", "runs.jsonl"]
    again = KeptRuns(tmp_path / "runs")
    found = again.find("k", with_readings=True)
    assert found is not None
    np.testing.assert_array_equal(found.curve("heldout_loss"), [0.1 + 0.2, math.nan, 1e-300])
    assert again.find("a", with_readings=True) is None
    before = (tmp_path / "runs.jsonl").read_bytes()
    again.gather()
    assert (tmp_path / "runs.jsonl").read_bytes() == before
    again.add(made(key="a", seconds=9.0))
    assert again.find("a").seconds == 9.0
    again.gather()
    after = (tmp_path / "runs.jsonl").read_bytes().splitlines()
    assert after[1] == before.splitlines()[1]  # the lines are in order of their keys
    assert KeptRuns(tmp_path / "runs").find("a").seconds == 9.0


def test_two_that_gather_lose_nothing_of_each_other(tmp_path) -> None:
    mine, yours = KeptRuns(tmp_path / "runs"), KeptRuns(tmp_path / "runs")
    assert mine.find("a") is None
    assert yours.find("b") is None  # both have read the file before the other adds to it
    mine.add(made(key="a"))
    mine.gather()
    yours.add(made(key="b"))
    yours.gather()
    assert [key for key in "ab" if KeptRuns(tmp_path / "runs").find(key)] == ["a", "b"]
    assert yours.find("a") is not None


def test_who_gathers_waits_for_another_who_does(tmp_path) -> None:
    store = KeptRuns(tmp_path / "runs")
    store.add(made(key="b"))
    with locked(tmp_path / "runs"):
        waiting = threading.Thread(target=KeptRuns(tmp_path / "runs").gather)
        waiting.start()
        waiting.join(0.2)
        assert waiting.is_alive()
        (tmp_path / "runs.jsonl").write_text(line_of(tmp_path, made(key="a")))
    waiting.join(5.0)
    assert all(KeptRuns(tmp_path / "runs").find(key) for key in "ab")


def line_of(folder, run: KeptRun) -> str:
    KeptRuns(folder / "aside").add(run)
    return (folder / "aside" / f"{run.key}.json").read_text()


def test_a_damaged_line_is_named(tmp_path) -> None:
    results = KeptRuns(tmp_path / "runs")
    results.add(made())
    results.gather()
    with (tmp_path / "runs.jsonl").open("a") as file:
        file.write('{"key": "half')
    with pytest.raises(RunError, match=r"runs\.jsonl, line 2: .* Delete it to run it anew"):
        KeptRuns(tmp_path / "runs").find("k")


def test_a_failed_write_leaves_nothing_behind(tmp_path) -> None:
    with pytest.raises(TypeError):
        KeptRuns(tmp_path).add(made(made_with={"torch": object()}))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("text", ["", "{", '{"key": 1}', '{"curves": {"a": ["x"]}, "figures": {}}', "[1]"])
def test_a_damaged_result_is_one_line_with_a_way_out(tmp_path, text) -> None:
    (tmp_path / "k.json").write_text(text)
    with pytest.raises(
        RunError, match=r"cannot read the finished run .*k\.json: .* Delete it to run it anew"
    ):
        KeptRuns(tmp_path).find("k")


def test_a_run_without_a_curve_does_not_serve_where_it_is_asked_for(tmp_path) -> None:
    results = KeptRuns(tmp_path / "runs")
    results.add(made())
    assert results.find("k", curves=("energy_j", "heldout_loss")) is not None
    assert results.find("k", curves=("energy_j", "training_loss")) is None


def test_a_curve_has_seven_digits() -> None:
    assert curve_of(np.array([1 / 3, 12345.67890123, -2e-9 / 3])) == [0.3333333, 12345.68, -6.666667e-10]
    kept = curve_of(np.array([math.nan, 0.0]))
    assert math.isnan(kept[0])
    assert kept[1] == 0.0
