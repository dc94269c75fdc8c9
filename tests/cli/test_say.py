"""Lines of words at the prompt."""

from __future__ import annotations

import io
import logging
import sys
from collections.abc import Callable

import pytest

from fedwave.cli.say import WarningLines, say

LINE = "error: the folder of-a-long-name-that-is-longer-than-the-terminal-is holds a run of other settings"

Shown = Callable[..., tuple[str, str]]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def on_terminal(monkeypatch: pytest.MonkeyPatch) -> Shown:
    """Return what calls a function on a terminal, and says what stands on its output and errors then."""

    def call(function: Callable[[], None], *, width: int = 30) -> tuple[str, str]:
        streams = (Terminal(), Terminal())
        with monkeypatch.context() as patch:
            patch.setenv("COLUMNS", str(width))
            for name, stream in zip(("stdout", "stderr"), streams, strict=True):
                patch.setattr(sys, name, stream)
            function()
        return streams[0].getvalue(), streams[1].getvalue()

    return call


def test_a_terminal_breaks_lines_between_words_alone(on_terminal: Shown) -> None:
    output, errors = on_terminal(lambda: say(LINE, to_errors=True))
    assert output == ""
    lines = errors.splitlines()
    assert " ".join(lines) == LINE
    assert max(len(line) for line in lines if "name" not in line) <= 30
    assert "of-a-long-name-that-is-longer-than-the-terminal-is" in lines  # a name can be copied


def test_output_and_errors_are_apart(on_terminal: Shown) -> None:
    assert on_terminal(lambda: say("Picture: a.png")) == ("Picture: a.png\n", "")


def test_a_terminal_of_no_width_is_given_some(on_terminal: Shown) -> None:
    assert on_terminal(lambda: say("a b c d e f g h i j k l"), width=1)[0] == "a b c d e f g h i j\nk l\n"


def test_a_pipe_has_every_line_in_one_piece(capsys: pytest.CaptureFixture[str]) -> None:
    say(LINE * 3)
    assert capsys.readouterr().out == LINE * 3 + "\n"


def test_a_warning_is_such_a_line(on_terminal: Shown) -> None:
    text = "%s words and words and words"
    record = logging.LogRecord("fedwave", logging.WARNING, "", 0, text, ("some",), None)
    _, errors = on_terminal(lambda: WarningLines().emit(record))
    assert errors == "warning: some words and words\nand words\n"
