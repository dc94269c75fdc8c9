"""Around every command: what goes wrong becomes one line and an exit code; signals end it in good order.

Exit codes: 0 done; 2 wrong input; 3 stopped (Ctrl-C, SIGTERM, SIGHUP, a full disk, too little memory) and,
if it was a run, resumable; 4 training diverged.

Nothing heavy is imported here: the guard stands before the package is loaded, which takes a second or two.
"""

from __future__ import annotations

import codecs
import errno
import logging
import math
import os
import signal
import sys
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import Any

from fedwave.cli.say import WarningLines, say
from fedwave.errors import DivergenceError, FedwaveError

DONE, WRONG_INPUT, STOPPED, DIVERGED = 0, 2, 3, 4

# Errors of the system that are not the user's doing: what was asked for may work another time.
_PASSING = {
    getattr(errno, name, None)
    for name in (
        "ENOSPC",
        "EDQUOT",
        "EFBIG",
        "EIO",
        "EMFILE",
        "ENFILE",
        "ENOMEM",
        "EAGAIN",
        "EBUSY",
        "ESTALE",
    )
}
# For terminals that have only ASCII; anything else becomes a question mark.
_PLAIN = {"±": "+/-", "–": "-", "—": "-", "−": "-", "…": "...", "×": "x", "·": "*", "’": "'"}
_SECONDS_BETWEEN_SIGNALS = 5.0  # further signals within this time must not cut the clean-up short
_asked_to_end: list[float] = []  # when a signal came


class Interrupted(BaseException):
    """The user or the system asked the command to end; the message says how to go on.

    Not an ``Exception``, so that nothing on the way takes it for an error that it could answer.
    """


def run_guarded(command: Callable[[], object]) -> int:
    """Run a command and return its exit code; nothing but a bug shows a traceback."""
    _end_like_ctrl_c()
    _write_any_text()
    _show_warnings()
    try:
        try:
            done = command()
        finally:
            sys.stdout.flush()
    except BaseException as error:
        code = _answer(error, was_interrupted=bool(_asked_to_end))
        if code is None:
            raise
        return code
    return done if isinstance(done, int) else DONE


def heed_signals() -> None:
    """Raise if a signal has come: a library, while it is imported, may swallow what a signal raises."""
    if _asked_to_end:
        raise Interrupted


def _answer(error: BaseException, *, was_interrupted: bool) -> int | None:
    """Say what happened and return the exit code; None for what only a bug can be."""
    line, code = _explain(error)
    if was_interrupted and code != STOPPED:
        # A library may turn the request to end into an error of its own, or be left half imported by it.
        line, code = "Interrupted.", STOPPED
    if was_interrupted:  # the rest is short; further signals must not turn the exit code into another
        for known in _signals():
            signal.signal(known, signal.SIG_IGN)
    if code is not None:
        _say(line)
        _let_go_of_output()
    return code


def _explain(error: BaseException) -> tuple[str, int | None]:
    match error:
        case DivergenceError():
            return f"error: {error}", DIVERGED
        case FedwaveError():
            return f"error: {error}", WRONG_INPUT
        case Interrupted():
            return f"Interrupted. {error}", STOPPED
        case KeyboardInterrupt():
            return "Interrupted.", STOPPED
        case BrokenPipeError():  # the reader of our output has gone, e.g. `| head`
            return "", STOPPED
        case SystemExit():
            return _explain_exit(error)
        case OSError():
            return _explain_system_error(error)
        case MemoryError():
            return f"error: not enough memory. Use fewer devices, samples or workers. {error}", STOPPED
        case RuntimeError() if "allocate memory" in str(error) or "out of memory" in str(error):  # torch's
            return "error: not enough memory. Use fewer devices, samples or workers.", STOPPED
        case RuntimeError() if "home directory" in str(error):
            return "error: there is no home folder. Set HOME to a folder that you may write to.", WRONG_INPUT
    return _explain_usage(error)


def _explain_exit(error: SystemExit) -> tuple[str, int | None]:
    if isinstance(error.__context__, BrokenPipeError):  # rich ends the program where nobody reads
        return "", STOPPED
    return f"error: a module ended the program with exit code {error.code}.", STOPPED


def _explain_system_error(error: OSError) -> tuple[str, int | None]:
    if isinstance(error, FileNotFoundError) and not _has_current_folder():
        return "error: the current folder does not exist any more. Change to another one.", WRONG_INPUT
    where = f" ({error.filename})" if error.filename else ""
    code = STOPPED if error.errno in _PASSING or error.errno is None else WRONG_INPUT
    return f"error: {error.strerror or error}{where}", code


def _explain_usage(error: BaseException) -> tuple[str, int | None]:
    """Explain a wrong option or argument, which the library for command lines raises."""
    import typer

    if isinstance(error, typer.Abort):
        return "Interrupted.", STOPPED
    own: type[BaseException] | None = getattr(typer, "TyperException", None)
    if isinstance(
        error, own or import_module("click").ClickException
    ):  # older ones, as Flower needs: click's
        message = getattr(error, "format_message", error.__str__)()
        # Without a message, the help itself was shown.
        return f"error: {message} See --help." if message else "", WRONG_INPUT
    return "", None


def _say(line: str) -> None:
    if line:
        with suppress(OSError, ValueError):  # nobody may be there to read it
            say(" ".join(line.split()), to_errors=True)


def _let_go_of_output() -> None:
    """Make sure that Python's own last flush cannot fail: a full disk or a closed pipe stays as it is."""
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _end_like_ctrl_c() -> None:
    """Let the signals of batch systems and closed terminals end a command as Ctrl-C does."""
    times = _asked_to_end
    times.clear()

    def interrupt(number: int, frame: FrameType | None) -> None:
        del number, frame
        now = time.monotonic()
        if times and now - times[-1] < _SECONDS_BETWEEN_SIGNALS:
            return
        times.append(now)
        raise Interrupted

    def ask_again(lost: sys.UnraisableHookArgs) -> None:
        """Repeat a request that came while Python tidied up, where no error can be raised."""
        if not isinstance(lost.exc_value, Interrupted):
            sys.__unraisablehook__(lost)
        elif hasattr(signal, "SIGALRM"):
            times[:] = [-math.inf]  # so that the next one counts
            signal.signal(signal.SIGALRM, interrupt)
            signal.setitimer(signal.ITIMER_REAL, 0.01)

    sys.unraisablehook = ask_again
    for known in _signals():
        if signal.getsignal(known) is not signal.SIG_IGN:  # e.g. started with nohup
            signal.signal(known, interrupt)


def _signals() -> list[signal.Signals]:
    names = ("SIGINT", "SIGTERM", "SIGHUP")
    return [getattr(signal, name) for name in names if hasattr(signal, name)]


def _write_any_text() -> None:
    """Let a text that the terminal cannot show, or a file's name that is not UTF-8, be no error."""
    codecs.register_error("fedwave", _in_plain_letters)
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="fedwave")


def _in_plain_letters(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeEncodeError)
    text = error.object[error.start : error.end]
    return "".join(_PLAIN.get(letter, "?") for letter in text), error.end


def _show_warnings() -> None:
    """Print the package's warnings, also when the progress bar is off."""
    logger = logging.getLogger("fedwave")
    if not logger.handlers:
        logger.addHandler(WarningLines())
    usual = warnings.showwarning

    def show(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
        """Print a warning of the package as one line: a user of the command has no line of code."""
        if category.__module__.startswith("fedwave."):
            logger.warning("%s", message)
        else:
            usual(message, category, *where, **more)

    warnings.showwarning = show


def _has_current_folder() -> bool:
    try:
        Path.cwd()
    except FileNotFoundError:
        return False
    return True
