"""One writer at a time: a lock on a run's folder that a dead process does not keep."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from fedwave.errors import RunError
from fedwave.files import open_to_append

LOCK = ".lock"


@contextmanager
def locked(folder: Path, *, waits: bool = False) -> Iterator[None]:
    """Hold the folder's lock; if another process holds it, raise, or wait for it.

    The operating system lets go of it when the process ends, however it ends. On a network disk the lock
    holds between machines where the disk supports it (NFS 4 does); where locks cannot be had at all, a
    warning says so.
    """
    with _open(folder / LOCK) as file:
        try:
            _lock(file, waits=waits)
        except BlockingIOError:
            file.seek(0)
            owner = file.read(200).strip() or "another process"
            raise RunError(
                f"{folder} is being written by {owner}. Wait until it ends, or stop it; two writers would "
                "mix their rounds."
            ) from None
        except OSError as error:
            logging.getLogger("fedwave").warning(
                "%s cannot be locked (%s): make sure that no other process writes to it.",
                folder,
                error.strerror,
            )
        file.seek(0)
        file.truncate()
        file.write(f"process {os.getpid()} on {socket.gethostname()}\n")
        file.flush()
        try:
            yield
        finally:
            with suppress(OSError):
                file.truncate(0)


def _open(path: Path) -> IO[str]:
    try:
        return open_to_append(path)
    except OSError as error:
        raise RunError(
            f"cannot write to the run folder {path.parent}: {error.strerror}. Make it writable, or copy it."
        ) from error


def _lock(file: IO[str], *, waits: bool) -> None:
    try:
        import fcntl
    except ImportError:  # Windows
        import msvcrt

        try:
            kind = msvcrt.LK_LOCK if waits else msvcrt.LK_NBLCK  # type: ignore[attr-defined]
            msvcrt.locking(file.fileno(), kind, 1)  # type: ignore[attr-defined]
        except OSError as error:
            raise BlockingIOError from error
        return
    fcntl.flock(file, fcntl.LOCK_EX | (0 if waits else fcntl.LOCK_NB))
