"""Batches: groups stay together, several run at once, and nothing goes on when the batch has ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

from fedwave.errors import ProblemError, RunError
from fedwave.runs.batch import Progress, run_batch
from tests.runs.batch_jobs import SmallJob, make

GROUPS = [[SmallJob("a"), SmallJob("b")], [SmallJob("c"), SmallJob("d"), SmallJob("e")], [SmallJob("f")]]


def run(folder: Path, groups, *, num_processes: int, progress=lambda _: None) -> list[tuple[str, int, int]]:
    results = []
    run_batch(
        groups,
        partial(make, folder=folder),
        num_processes=num_processes,
        seconds_of=lambda job: 10.0 if job.name < "c" else 1.0,
        done=lambda job, result: results.append(result),
        progress=progress,
    )
    return results


def test_one_process_makes_all_in_order_with_a_cache_for_each_group(tmp_path) -> None:
    told: list[Progress[SmallJob]] = []
    made = run(tmp_path, GROUPS, num_processes=1, progress=told.append)
    assert [(name, shared) for name, _, shared in made] == [
        ("a", 1), ("b", 2), ("c", 1), ("d", 2), ("e", 3), ("f", 1),
    ]  # fmt: skip
    assert {pid for _, pid, _ in made} == {os.getpid()}
    assert [one.num_done for one in told] == list(range(7))
    assert {one.num_runs for one in told} == {6}
    assert [one.seconds_left for one in told] == [24.0, 14.0, 4.0, 3.0, 2.0, 1.0, 0.0]
    assert [one.last and one.last.name for one in told] == [None, *"abcdef"]


@pytest.mark.processes
def test_processes_share_the_groups_and_a_group_stays_in_one(tmp_path) -> None:
    told: list[Progress[SmallJob]] = []
    made = run(tmp_path, GROUPS, num_processes=2, progress=told.append)
    assert sorted((name, shared) for name, _, shared in made) == [
        ("a", 1), ("b", 2), ("c", 1), ("d", 2), ("e", 3), ("f", 1),
    ]  # fmt: skip
    pids = {name: pid for name, pid, _ in made}
    assert pids["a"] == pids["b"] != pids["c"] == pids["d"] == pids["e"]
    assert os.getpid() not in pids.values()
    assert [one.num_done for one in told] == list(range(7))
    assert told[0].seconds_left == 12.0  # 24 seconds of work, two at once
    assert not any(is_alive(pid) for pid in pids.values())


@pytest.mark.processes
@pytest.mark.parametrize("num_processes", [1, 2])
def test_an_error_ends_the_batch_and_names_its_run(tmp_path, num_processes: int) -> None:
    groups = [[SmallJob("a"), SmallJob("b", "fails"), SmallJob("c")], [SmallJob("d")]]
    with pytest.raises(ProblemError, match=r"^the problem is wrong\. The run was: make b$"):
        run(tmp_path, groups, num_processes=num_processes)
    assert not (tmp_path / "c.pid").exists()


@pytest.mark.processes
def test_a_process_that_dies_is_one_line_with_a_way_out_and_the_others_end(tmp_path) -> None:
    groups = [[SmallJob("a", "lasts")], [SmallJob("b"), SmallJob("c", "dies")]]
    with pytest.raises(RunError, match="a process of the batch was ended.*fewer --jobs") as caught:
        run(tmp_path, groups, num_processes=2)
    assert "\n" not in str(caught.value)
    assert not is_alive(pid_of(tmp_path / "a.pid"))


@pytest.mark.processes
def test_who_is_interrupted_leaves_no_process_behind(tmp_path) -> None:
    def stop(now: Progress[SmallJob]) -> None:
        if now.num_done == 1:
            pid_of(tmp_path / "a.pid")  # it is at work
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, [[SmallJob("a", "lasts")], [SmallJob("b")]], num_processes=2, progress=stop)
    assert not is_alive(pid_of(tmp_path / "a.pid"))


@pytest.mark.processes
def test_who_is_killed_leaves_no_process_behind(tmp_path) -> None:
    command = [sys.executable, "-m", "tests.runs.batch_jobs", str(tmp_path)]
    with subprocess.Popen(command, cwd=Path(__file__).parents[2]) as parent:
        pids = [pid_of(tmp_path / name) for name in ("a.pid", "b.pid")]
        parent.send_signal(signal.SIGKILL)
    for _ in range(100):
        if not any(map(is_alive, pids)):
            return
        time.sleep(0.1)
    raise AssertionError("processes go on without their parent")


def pid_of(path: Path) -> int:
    """Return the process that wrote its number there, once it has."""
    for _ in range(600):
        if path.exists() and (text := path.read_text()):
            return int(text)
        time.sleep(0.1)
    raise AssertionError(f"{path} was not written")


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return "zombie" not in Path(f"/proc/{pid}/status").read_text() if Path("/proc").exists() else True
