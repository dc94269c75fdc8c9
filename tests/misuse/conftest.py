"""The command as a careless user types it, in this process, and what it leaves on disk."""

from __future__ import annotations

import logging
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.in_process import Command


class Fedwave(Command):
    """The command where it must refuse, and lose nothing."""

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
