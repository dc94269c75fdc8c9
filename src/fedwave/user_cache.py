"""The user's cache: what lies there is believed only where nobody but this user can have put it there.

Folders and files are opened without following links and looked at once they are open, so that nobody can
exchange them in between.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

_OWN_FOLDER = 0o700
_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def cache_root() -> Path:
    """Return the folder of all caches: XDG_CACHE_HOME, which must be absolute, or the usual one."""
    given = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if given.is_absolute():
        return given
    try:
        home = Path.home()
    except RuntimeError:
        raise FileNotFoundError(errno.ENOENT, "there is no home folder: set HOME") from None
    return home / ("Library/Caches" if sys.platform == "darwin" else ".cache")


@dataclass(frozen=True)
class PrivateFolder:
    """An open folder that belongs to this user, and that nobody else can write to."""

    path: Path  # for people; files are reached through the descriptor
    descriptor: int

    def names(self) -> list[str]:
        """Return the names in the folder, in order."""
        with os.scandir(self.descriptor) as entries:
            return sorted(entry.name for entry in entries)

    @contextmanager
    def reading(self, name: str) -> Iterator[int]:
        """Open a file for reading; raise unless it is a plain one that only this user can have written."""
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK  # a pipe must not wait for its writer
        descriptor = os.open(name, flags, dir_fd=self.descriptor)
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
                raise PermissionError(f"{self.path / name} is not a plain file with one name")
            _require_own(status, self.path / name)
            yield descriptor
        finally:
            os.close(descriptor)

    @contextmanager
    def draft(self, content: bytes) -> Iterator[str]:
        """Write a file and see it on the disk; give its name, and remove it in the end unless it was kept."""
        name = f".draft-{secrets.token_hex(8)}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        try:
            with os.fdopen(os.open(name, flags, 0o600, dir_fd=self.descriptor), "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())  # a power cut must not leave half a file under its final name
            yield name
        finally:
            with suppress(OSError):
                self.remove(name)

    def keep(self, draft: str, name: str) -> None:
        """Give a draft its final name, in one step."""
        os.rename(draft, name, src_dir_fd=self.descriptor, dst_dir_fd=self.descriptor)
        with suppress(OSError):  # some network disks have no such thing
            os.fsync(self.descriptor)

    def remove(self, name: str) -> None:
        """Remove a file."""
        os.unlink(name, dir_fd=self.descriptor)


@contextmanager
def private_folder(root: Path, *names: str, is_made: bool = True) -> Iterator[PrivateFolder]:
    """Open ``root/names[0]/names[1]/...``; raise an ``OSError`` unless this user alone can write to each.

    The root itself is as the user gave it. What does not exist is made for this user alone, if ``is_made``.
    """
    if not hasattr(os, "geteuid"):
        raise PermissionError("this system does not tell whose files are whose")
    if is_made:
        _make_root(root)
    path, descriptor = root, os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for name in names:
            path /= name
            outer, descriptor = descriptor, _open_folder(descriptor, name, path, is_made=is_made)
            os.close(outer)
        yield PrivateFolder(path, descriptor)
    finally:
        os.close(descriptor)


def _make_root(root: Path) -> None:
    for folder in (*reversed(root.parents), root):
        if not folder.exists():
            folder.mkdir(mode=_OWN_FOLDER, exist_ok=True)


def _open_folder(outer: int, name: str, path: Path, *, is_made: bool) -> int:
    if is_made:
        with suppress(FileExistsError):
            os.mkdir(name, _OWN_FOLDER, dir_fd=outer)
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
    try:
        descriptor = os.open(name, flags, dir_fd=outer)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise PermissionError(f"{path} is not a folder that can be used ({error.strerror})") from error
    try:
        _require_own(os.fstat(descriptor), path)
    except PermissionError:
        os.close(descriptor)
        raise
    return descriptor


def _require_own(status: os.stat_result, path: Path) -> None:
    if status.st_uid != os.geteuid():
        raise PermissionError(f"{path} belongs to another user (number {status.st_uid})")
    if status.st_mode & _BY_OTHERS:
        raise PermissionError(f"others can write to {path}: chmod go-w {path}")
