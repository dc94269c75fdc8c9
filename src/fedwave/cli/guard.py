"""Around every command: what goes wrong becomes one line and an exit code; signals end it in good order.

Exit codes: 0 done; 2 wrong input; 3 stopped (Ctrl-C, SIGTERM, SIGHUP, a full disk) and, if it was a run,
resumable; 4 training diverged.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from types import FrameType

import typer

from fedwave.errors import DivergenceError, FedwaveError

DONE, WRONG_INPUT, STOPPED, DIVERGED = 0, 2, 3, 4


class Interrupted(BaseException):
    """The user or the system asked the command to end; the message says how to go on.

    Not an ``Exception``, so that nothing on the way takes it for an error that it could answer.
    """


def run_guarded(command: Callable[[], object]) -> int:
    """Run a command and return its exit code; nothing but a bug shows a traceback."""
    _end_like_ctrl_c()
    _show_warnings()
    try:
        try:
            done = command()
        finally:
            sys.stdout.flush()
    except BrokenPipeError:  # the reader of our output has gone, e.g. `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return STOPPED
    except (KeyboardInterrupt, typer.Abort):
        return _fail("Interrupted.", STOPPED)
    except Interrupted as request:
        return _fail(f"Interrupted. {request}", STOPPED)
    except typer.TyperException as error:  # a wrong option or argument
        message = getattr(error, "format_message", error.__str__)()
        return _fail(f"error: {message} See --help.", WRONG_INPUT)
    except DivergenceError as error:
        return _fail(f"error: {error}", DIVERGED)
    except FedwaveError as error:
        return _fail(f"error: {error}", WRONG_INPUT)
    except MemoryError:
        return _fail("error: not enough memory. Use fewer devices, samples or workers.", STOPPED)
    except OSError as error:
        where = f" ({error.filename})" if error.filename else ""
        return _fail(f"error: {error.strerror or error}{where}", STOPPED)
    return done if isinstance(done, int) else DONE


def _fail(line: str, code: int) -> int:
    with suppress(OSError):  # nobody may be there to read it
        print(" ".join(line.split()), file=sys.stderr, flush=True)
    return code


def _end_like_ctrl_c() -> None:
    """Let the signals of batch systems and closed terminals end a command as Ctrl-C does; one is enough."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        del number, frame
        for known in _signals():
            signal.signal(known, signal.SIG_IGN)  # further ones must not cut the clean-up short
        raise Interrupted

    for known in _signals():
        if signal.getsignal(known) is not signal.SIG_IGN:  # e.g. started with nohup
            signal.signal(known, interrupt)


def _signals() -> list[signal.Signals]:
    names = ("SIGINT", "SIGTERM", "SIGHUP")
    return [getattr(signal, name) for name in names if hasattr(signal, name)]


def _show_warnings() -> None:
    """Print the package's warnings, also when the progress bar is off."""
    logger = logging.getLogger("fedwave")
    if not logger.handlers:
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("warning: %(message)s"))
        logger.addHandler(handler)
