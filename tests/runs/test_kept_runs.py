"""Finished runs are kept to the bit, found by key, never half written, and gathered by several at once."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

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
    assert sorted(path.name for path in (tmp_path / "runs").iterdir()) == [".lock", "k.json"]


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


def test_what_another_gathers_meanwhile_is_found(tmp_path) -> None:
    mine, yours = KeptRuns(tmp_path / "runs"), KeptRuns(tmp_path / "runs")
    yours.add(made(key="a"))
    yours.gather()
    assert mine.find("a") is not None  # the file was read
    yours.add(made(key="b"))
    yours.gather()  # the run alone is gone, and the file another
    assert mine.find("b") is not None


def test_a_run_is_not_added_while_another_gathers_who_would_delete_it(tmp_path) -> None:
    store = KeptRuns(tmp_path / "runs")
    store.add(made())
    with locked(tmp_path / "runs"):
        adding = threading.Thread(target=KeptRuns(tmp_path / "runs").add, args=[made(seconds=9.0)])
        adding.start()
        adding.join(0.2)
        assert adding.is_alive()
        assert store.find("k").seconds == 1.5
    adding.join(5.0)
    assert store.find("k").seconds == 9.0


@pytest.mark.parametrize("at", ["Path.open", "os.fsync", "Path.replace", "after Path.replace", "Path.unlink"])
def test_who_is_killed_while_gathering_has_lost_nothing(tmp_path, monkeypatch, at) -> None:
    store = KeptRuns(tmp_path / "runs")
    store.add(made(key="a"))
    store.gather()
    for key in "bc":
        store.add(made(key=key))

    class Killed(BaseException):
        pass

    owner, name = (os, "fsync") if at == "os.fsync" else (Path, at.split(".")[-1])
    original = getattr(owner, name)

    def killed(self, *arguments, **options):
        if at == "after Path.replace":
            original(self, *arguments, **options)
        elif at == "Path.unlink" and self.name == "b.json":
            return original(self, *arguments, **options)
        raise Killed

    monkeypatch.setattr(owner, name, killed)
    with pytest.raises(Killed):
        store.gather()
    monkeypatch.undo()
    assert all(KeptRuns(tmp_path / "runs").find(key) for key in "abc")
    KeptRuns(tmp_path / "runs").gather()
    assert [line[8:9] for line in (tmp_path / "runs.jsonl").read_text().splitlines()] == ["a", "b", "c"]
    assert all(KeptRuns(tmp_path / "runs").find(key) for key in "abc")
    left = [path.name for path in (tmp_path / "runs").iterdir()]
    assert left == [".lock"]


ADDING = """
import sys
from pathlib import Path
from tests.runs.test_kept_runs import KeptRuns, made
own, folder = sys.argv[1], Path(sys.argv[2])
print("ready", flush=True)
sys.stdin.readline()
for number in range(40):
    store = KeptRuns(folder)
    store.find("nothing")
    store.add(made(key=f"{own}{number:02}"))
    store.gather()
"""


@pytest.mark.processes
def test_two_processes_that_add_and_gather_at_once_lose_nothing(tmp_path) -> None:
    words = [sys.executable, "-c", ADDING]
    both = [
        subprocess.Popen(
            [*words, own, str(tmp_path / "runs")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for own in "xy"
    ]
    for process in both:
        assert process.stdout.readline() == "ready\n"
    for process in both:
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in both:
        process.communicate(timeout=60)
        assert process.returncode == 0
    lines = (tmp_path / "runs.jsonl").read_text().splitlines()
    assert len(lines) == 80
    store = KeptRuns(tmp_path / "runs")
    assert all(store.find(f"{own}{number:02}") for own in "xy" for number in range(40))


@pytest.mark.processes
def test_a_process_that_is_killed_while_it_adds_and_gathers_loses_nothing_that_was_added(tmp_path) -> None:
    folder = tmp_path / "runs"
    for turn in range(6):
        process = subprocess.Popen(
            [sys.executable, "-c", ADDING, f"{turn}", str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout.readline() == "ready\n"
        process.stdin.write("go\n")
        process.stdin.flush()
        time.sleep(0.02 + 0.03 * turn)
        process.kill()
        process.communicate()
        before = len((tmp_path / "runs.jsonl").read_text().splitlines()) if turn else 0
        store = KeptRuns(folder)
        store.gather()
        numbers = [number for number in range(40) if store.find(f"{turn}{number:02}")]
        assert numbers == list(range(len(numbers)))  # no gap: what was added before is there
        assert len((tmp_path / "runs.jsonl").read_text().splitlines()) >= before


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


def tampered(**changes) -> str:
    whole = {
        "key": "k", "command": "", "made_with": {}, "num_rounds": 1, "seconds": 1.0, "num_remembered": 0,
        "figures": {"loss": 1.0}, "curves": {"loss": [1.0]}, "probes": {},
    }  # fmt: skip
    return json.dumps({**whole, **changes})


def test_the_line_that_is_tampered_with_below_is_whole(tmp_path) -> None:
    (tmp_path / "k.json").write_text(tampered())
    assert KeptRuns(tmp_path).find("k").figures == {"loss": 1.0}


@pytest.mark.parametrize(
    "text",
    [
        "", "{", '{"key": 1}', '{"curves": {"a": ["x"]}, "figures": {}}', "[1]", "null", "[" * 100_000,
        *(tampered(key=value) for value in ([], {}, None, 3, True)),
        *(tampered(probes=value) for value in ([], 3, "x", None, {"1": []}, {"1": {"a": 2}}, {"x": {}})),
        tampered(probes={"1": {"a": {"accuracy": "x"}}}),
        *(tampered(figures={"loss": value}) for value in (10**400, "x", [], {}, True)),
        *(tampered(curves={"loss": value}) for value in ([], [1.0, 2.0], [10**400], ["x"], 3, None, "1")),
        *(tampered(num_rounds=value) for value in (None, 1.5, "1", True, -1)),
        tampered(seconds="1"), tampered(num_remembered=None), tampered(command=None), tampered(made_with=3),
    ],
)  # fmt: skip
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


@pytest.mark.parametrize("content", [b"\xff\xfe", b"\0" * 9])
def test_finished_runs_that_are_no_text_are_one_line(tmp_path, content) -> None:
    (tmp_path / "runs.jsonl").write_bytes(content)
    with pytest.raises(RunError, match=r"cannot read the finished runs .*runs\.jsonl: .* Restore it"):
        KeptRuns(tmp_path / "runs").find("k")


def test_a_named_pipe_is_no_file_of_finished_runs(tmp_path) -> None:
    os.mkfifo(tmp_path / "runs.jsonl")
    with pytest.raises(RunError, match="it is a named pipe, not a regular file"):
        KeptRuns(tmp_path / "runs").find("k")
