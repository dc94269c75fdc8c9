"""A run stopped at every one of its file operations, as by kill -9 and as by a full disk: same bits after."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from fedwave.errors import RunError
from fedwave.runs.run import resume_run, run_experiment
from tests.runs.small_runs import contents, experiment

SETTINGS: dict[str, Any] = {
    "data": {"dataset": {"shape": [6]}},
    "model": {"kind": "softmax"},
    "num_rounds": 3,
    "evaluation": {"every": 2},
    "cell": {"preset": "paper", "num_blocks": 2, "method": "greedy"},
    "selection": {"num_selected": 2},
}


class Killed(BaseException):
    """Stands for kill -9: nothing may answer it, and nothing is tidied up on disk."""


class Stopper:
    """Counts what is done to files below a folder, and ends it at the n-th operation."""

    def __init__(self, folder: Path, stop_at: int, error: Callable[[], BaseException], share: float) -> None:
        self.folder, self.stop_at, self.error, self.share = folder, stop_at, error, share
        self.count = 0
        self.is_dead = False

    def step(self) -> None:
        """One operation; a dead process does no more."""
        if self.is_dead and isinstance(self.error(), Killed):
            raise Killed
        if self.count == self.stop_at:
            self.is_dead = True
            raise self.error()
        self.count += 1

    def is_ours(self, path: object) -> bool:
        return isinstance(path, str | os.PathLike) and str(path).startswith(str(self.folder))


class WatchedFile:
    """A file whose writes count; the one that is stopped writes a share of its text."""

    def __init__(self, file: Any, stopper: Stopper) -> None:
        self._file, self._stopper = file, stopper

    def write(self, content: Any) -> int:
        try:
            self._stopper.step()
        except BaseException:
            self._file.write(content[: int(self._stopper.share * len(content))])
            self._file.flush()
            raise
        written: int = self._file.write(content)
        self._file.flush()  # what was written before a kill is on disk
        return written

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def __enter__(self) -> WatchedFile:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def __iter__(self) -> Iterator[str]:
        return iter(self._file)


@contextmanager
def stopping(stopper: Stopper) -> Iterator[None]:
    """Let every open for writing, write, fsync, replace, unlink and mkdir below the folder count."""
    with pytest.MonkeyPatch.context() as patch:
        path_open, replace, unlink, mkdir, fsync = Path.open, Path.replace, Path.unlink, Path.mkdir, os.fsync

        def watched_open(self: Path, mode: str = "r", *arguments: Any, **options: Any) -> Any:
            if not stopper.is_ours(self) or not set(mode) & set("wax+") or self.name == ".lock":
                return path_open(self, mode, *arguments, **options)
            stopper.step()
            return WatchedFile(path_open(self, mode, *arguments, **options), stopper)

        def counted(original: Callable[..., Any]) -> Callable[..., Any]:
            def call(self: Any, *arguments: Any, **options: Any) -> Any:
                if isinstance(self, int) or stopper.is_ours(self):
                    stopper.step()
                return original(self, *arguments, **options)

            return call

        patch.setattr(Path, "open", watched_open)
        patch.setattr(Path, "replace", counted(replace))
        patch.setattr(Path, "unlink", counted(unlink))
        patch.setattr(Path, "mkdir", counted(mkdir))
        patch.setattr(os, "fsync", counted(fsync))
        yield


def full_disk() -> OSError:
    return OSError(errno.ENOSPC, "No space left on device")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return contents(run_experiment(experiment(**SETTINGS), tmp_path_factory.mktemp("run") / "whole").path)


def count_operations(folder: Path) -> int:
    stopper = Stopper(folder, -1, Killed, share=0.0)
    with stopping(stopper):
        run_experiment(experiment(**SETTINGS), folder)
    return stopper.count


def stop_and_go_on(folder: Path, stop_at: int, error: Callable[[], BaseException], share: float) -> None:
    """Run into the folder, be stopped at an operation, and go on until the run is whole."""
    try:
        with stopping(Stopper(folder, stop_at, error, share)):
            run_experiment(experiment(**SETTINGS), folder)
    except (Killed, OSError, RunError):
        pass
    if (folder / "config.toml").exists():
        resume_run(folder)
    else:
        run_experiment(experiment(**SETTINGS), folder)  # what a start left behind is not in the way


@pytest.mark.parametrize("error", [Killed, full_disk])
def test_a_run_stopped_at_some_file_operations_ends_with_the_same_bits(
    whole: dict[str, Any], tmp_path: Path, error: Callable[[], BaseException]
) -> None:
    total = count_operations(tmp_path / "count")
    assert total > 40
    for stop_at in (0, 3, 6, *range(10, total - 10, 9), total - 2):
        stop_and_go_on(tmp_path / str(stop_at), stop_at, error, share=0.5)
        assert contents(tmp_path / str(stop_at)) == whole, stop_at


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.0, 0.05, 0.5])  # of what was being written
@pytest.mark.parametrize("error", [Killed, full_disk])
def test_a_run_stopped_at_every_file_operation_ends_with_the_same_bits(
    whole: dict[str, Any], tmp_path: Path, error: Callable[[], BaseException], share: float
) -> None:
    for stop_at in range(count_operations(tmp_path / "count")):
        stop_and_go_on(tmp_path / str(stop_at), stop_at, error, share=share)
        assert contents(tmp_path / str(stop_at)) == whole, stop_at


@pytest.mark.slow
@pytest.mark.parametrize("error", [Killed, full_disk])
def test_a_resume_stopped_at_every_file_operation_can_be_resumed_again(
    whole: dict[str, Any], tmp_path: Path, error: Callable[[], BaseException]
) -> None:
    total = count_operations(tmp_path / "count")
    for stop_at in range(0, total, 3):
        folder = tmp_path / str(stop_at)
        try:
            with stopping(Stopper(folder, total // 2, Killed, share=0.5)):
                run_experiment(experiment(**SETTINGS), folder)
        except Killed:
            pass
        try:
            with stopping(Stopper(folder, stop_at, error, share=0.5)):
                resume_run(folder)
        except (Killed, OSError):
            pass
        resume_run(folder)
        assert contents(folder) == whole, stop_at
