"""The command, run in the process of the test: quick, and with what it printed at hand."""

from __future__ import annotations

import sys
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


class Command:
    """Runs commands in a folder of its own; anything but an exit is a traceback, and fails the test."""

    def __init__(
        self,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
        folder: Path,
        *,
        columns: int = 200,
    ) -> None:
        monkeypatch.chdir(folder)
        monkeypatch.setenv("COLUMNS", str(columns))
        monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "no-cache"))
        monkeypatch.delenv("FEDWAVE_DATA", raising=False)
        self._monkeypatch, self._capsys, self.folder = monkeypatch, capsys, folder

    def __call__(self, *words: str) -> Done:
        self._monkeypatch.setattr(sys, "argv", ["fedwave", *words])
        with pytest.raises(SystemExit) as stopped:
            main()
        output = self._capsys.readouterr()
        return Done(int(stopped.value.code or 0), output.out, output.err)
