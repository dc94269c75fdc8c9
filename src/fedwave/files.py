"""Opens regular files alone, reads what fits the memory, and replaces a file in one step.

A named pipe, a device or a socket in the place of a file would be waited for, or read, for ever. A file is
looked at after it is open, so nobody can put another in its place in between.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from io import BufferedReader
from pathlib import Path
from typing import IO

from fedwave.ram import in_words, memory_limit

_KINDS = {
    stat.S_IFIFO: "a named pipe",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
}
_BLOCK = 1 << 20
LARGEST_SETTINGS = 1 << 26  # 64 MiB; ours have a few KiB


def open_file(path: Path) -> BufferedReader:
    """Return a regular file, open to be read as bytes; anything else is an ``OSError``."""
    return os.fdopen(_open_regular(path, os.O_RDONLY), "rb")


def open_to_append(path: Path) -> IO[str]:
    """Return a regular file as text, open to be read and appended to, made if it is not there."""
    number = _open_regular(path, os.O_RDWR | os.O_CREAT | os.O_APPEND)
    return os.fdopen(number, "a+", encoding="utf-8")


def read_bytes(path: Path, *, largest: int | None = None) -> bytes:
    """Return a regular file's content; more than ``largest`` bytes, or than fit the memory, is an error."""
    with open_file(path) as file:
        return read_rest(file, largest=largest)


def read_rest(file: BufferedReader, *, largest: int | None = None) -> bytes:
    """Return what is left of an open file, likewise."""
    size = os.fstat(file.fileno()).st_size - file.tell()
    most = memory_limit() // 2  # the content, and what is made of it
    most = most if largest is None else min(largest, most)
    if size > most:
        raise OSError(errno.EFBIG, f"it has {in_words(size)}, and at most {in_words(most)} are read")
    return file.read()


def read_text(path: Path, *, largest: int | None = None) -> str:
    """Return the text of a file in UTF-8; anything else in it is a ``ValueError``."""
    return text_of(read_bytes(path, largest=largest))


def text_of(content: bytes) -> str:
    """Return the text in UTF-8, without a byte order mark; raise a ``UnicodeDecodeError`` if it is none."""
    at = content.find(b"\0")
    if at >= 0:  # as in UTF-16, and where a disk has lost what was written
        raise UnicodeDecodeError("utf-8", content, at, at + 1, "a zero byte is no text")
    return content.decode("utf-8-sig")


def blocks_of(file: BufferedReader, num_bytes: int) -> Iterator[bytes]:
    """Yield the next bytes of a file piece by piece: they need not fit the memory."""
    while block := file.read(min(_BLOCK, num_bytes)):
        num_bytes -= len(block)
        yield block


def replace_file(path: Path, content: Iterable[bytes]) -> None:
    """Write a file in one step: at any moment, and after a power cut, the old or the new one is whole."""
    temporary = path.with_name(f".{path.name}.partial")
    try:
        temporary.unlink(missing_ok=True)  # what a kill has left
        with temporary.open("xb") as file:
            for block in content:
                file.write(block)
            file.flush()
            os.fsync(file.fileno())  # a power cut must not leave an empty file under the final name
        temporary.replace(path)
    except OSError:
        with suppress(OSError):  # on a full disk, give back what was taken
            temporary.unlink()
        raise
    _sync_folder(path.parent)  # nor the old name's entry after what follows it


def _sync_folder(path: Path) -> None:
    with suppress(OSError):  # Windows and some network disks have no such thing
        number = os.open(path, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)


def _open_regular(path: Path, flags: int) -> int:
    # Not to wait for somebody at the other end of a pipe. Windows has neither of the two, and O_BINARY.
    for name in ("O_NONBLOCK", "O_CLOEXEC", "O_BINARY"):
        flags |= getattr(os, name, 0)
    number = os.open(path, flags, 0o666)
    try:
        kind = stat.S_IFMT(os.fstat(number).st_mode)
        if kind == stat.S_IFDIR:
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if kind != stat.S_IFREG:
            what = _KINDS.get(kind, "something else")
            raise OSError(errno.EINVAL, f"it is {what}, not a regular file", str(path))
    except OSError:
        os.close(number)
        raise
    return number
