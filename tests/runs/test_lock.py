"""One writer at a time: a second is refused, a dead one keeps nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from fedwave.errors import RunError
from fedwave.runs.lock import locked
from fedwave.runs.run import resume_run
from tests.runs.small_runs import (
    files_of,
)


def test_two_writers_are_one_too_many(cut: Path) -> None:
    before = files_of(cut)
    with locked(cut), pytest.raises(RunError, match=r"is being written by process \d+ on .*Wait until it"):
        resume_run(cut)
    assert files_of(cut) == before
    assert resume_run(cut).summary["num_rounds"] == 4  # the lock went with its holder


def test_a_killed_process_does_not_keep_the_lock(cut: Path) -> None:
    hold = (
        "import sys, time; from pathlib import Path; from fedwave.runs.lock import locked\n"
        "with locked(Path(sys.argv[1])):\n    print('held', flush=True); time.sleep(60)"
    )
    source = str(Path(__file__).parents[2] / "src")
    process = subprocess.Popen(
        [sys.executable, "-c", hold, str(cut)], stdout=subprocess.PIPE, env={"PYTHONPATH": source}
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"held\n"
    with pytest.raises(RunError, match=f"is being written by process {process.pid} on"):
        resume_run(cut)
    process.kill()
    process.communicate()
    assert resume_run(cut).summary["num_rounds"] == 4


def test_a_disk_without_locks_is_said(
    cut: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def no_locks(*_: object) -> None:
        raise OSError(37, "No locks available")

    monkeypatch.setattr("fcntl.flock", no_locks)
    assert resume_run(cut).summary["num_rounds"] == 4
    assert "cannot be locked (No locks available): make sure that no other process writes" in caplog.text
