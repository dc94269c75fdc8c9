"""The command as a careless user types it, in this process, and what it leaves on disk."""

from __future__ import annotations

import logging
import signal
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from fedwave.__main__ import main


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    code: int
    stdout: str
    stderr: str


class Fedwave:
    """Runs commands in a folder of its own; anything but an exit is a traceback, and fails the test."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], folder: Path
    ) -> None:
        monkeypatch.chdir(folder)
        monkeypatch.setenv("COLUMNS", "200")
        monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "no-cache"))
        monkeypatch.delenv("FEDWAVE_DATA", raising=False)
        self._monkeypatch, self._capsys, self.folder = monkeypatch, capsys, folder

    def __call__(self, *words: str) -> Done:
        self._monkeypatch.setattr(sys, "argv", ["fedwave", *words])
        with pytest.raises(SystemExit) as stopped:
            main()
        output = self._capsys.readouterr()
        return Done(int(stopped.value.code or 0), output.out, output.err)

    def refuses(self, words: list[str], *said: str, code: int = 2) -> None:
        """Run a command that must fail in one line, say these words, and leave the disk as it was."""
        before = self.files()
        done = self(*words)
        assert (done.code, done.stdout) == (code, ""), done
        assert done.stderr.startswith("error: "), done
        assert done.stderr.count("\n") == 1, done
        assert "Traceback" not in done.stderr
        for text in said:
            assert text in done.stderr, done
        assert self.files() == before

    def files(self) -> dict[str, bytes]:
        """Every file below the folder, but for locks and what Python and matplotlib keep for themselves."""
        return {
            str(path.relative_to(self.folder)): path.read_bytes()
            for path in sorted(self.folder.rglob("*"))
            if path.is_file()
            and path.name != ".lock"
            and path.suffix != ".pyc"
            and "no-cache" not in path.parts
        }


@pytest.fixture
def fedwave(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Iterator[Fedwave]:
    names = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {name: signal.getsignal(name) for name in names}
    path = list(sys.path)
    yield Fedwave(monkeypatch, capsys, tmp_path)
    for name, handler in before.items():
        signal.signal(name, handler)
    logging.getLogger("fedwave").handlers.clear()
    sys.path[:] = path
