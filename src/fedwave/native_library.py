"""Libraries that are built from a C file of the package: the CNN's kernels, the search for the optimum.

The machine's own C compiler builds them at first use, and they are kept in the user's cache. Without a
compiler, or with ``FEDWAVE_COMPILE=0``, everything runs without them, slower and to the same bits.

What is loaded is only what this user alone can have kept, whole as it was built; a library is kept once
another process has loaded it and got the right results from it.
"""

from __future__ import annotations

import ctypes
import hashlib
import logging
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Protocol

from fedwave.user_cache import PrivateFolder, cache_root, private_folder

SWITCH = "FEDWAVE_COMPILE"
PATIENCE_S = 30.0  # with a compiler, which needs half a second on a quiet machine
# No fused multiply-adds: they would round otherwise than torch and numpy. Comparisons need not trap: so they
# vectorise.
FLAGS = ("-O3", "-march=native", "-ffp-contract=off", "-fno-trapping-math", "-shared", "-fPIC", "-std=c11")
_MAX_BYTES = 1 << 24  # of a library, which has some 40 KB
_OPEN_FILES = Path("/proc/self/fd")
_ONE_AT_A_TIME = threading.Lock()

logger = logging.getLogger("fedwave")


class _BuildError(Exception):
    """The compiler did not make a library that works."""


class Check(Protocol):
    """A module that is a program of its own: run with a library's path it prints a digest of its results."""

    __file__: str | None
    RIGHT_DIGEST: str

    def load(self, path: str) -> ctypes.CDLL:
        """Return the library at a path; raise an ``OSError`` if it is none, or has not all functions."""
        ...


@dataclass(frozen=True)
class Source:
    """A C file, and what is said of it where it cannot be used."""

    name: str  # that its libraries begin with
    file: Path
    check: Check
    what: str  # "the CNN's kernels"
    without: str  # "torch alone is slower, to the same bits"
    links: tuple[str, ...] = ()


def library(source: Source) -> ctypes.CDLL | None:
    """Return the library of a source, or nothing where it cannot be built; what is wrong is said once."""
    with _ONE_AT_A_TIME:
        return _library(source)


@cache
def _library(source: Source) -> ctypes.CDLL | None:
    if os.environ.get(SWITCH, "1") == "0" or not hasattr(os, "geteuid"):
        return None
    try:
        try:
            with private_folder(cache_root(), "fedwave", "compiled") as folder:
                return _kept_or_built(folder, source)
        except OSError as error:
            if _compiler() is None:
                return None
            logger.warning(
                "the cache is not used (%s); %s are built for this process alone. Mend the "
                "folder, or set XDG_CACHE_HOME to one of your own.",
                error,
                source.what,
            )
            with tempfile.TemporaryDirectory() as scratch, private_folder(Path(scratch)) as folder:
                return _kept_or_built(folder, source)
    except (_BuildError, OSError) as error:
        logger.warning(
            "%s were not built (%s); %s. Mend the C compiler, or set %s=0 to do without it.",
            source.what,
            error,
            source.without,
            SWITCH,
        )
    return None


def _kept_or_built(folder: PrivateFolder, source: Source) -> ctypes.CDLL | None:
    """Return the library for this source and this processor; build it if it is not there yet."""
    made_of = "\n".join([source.file.read_text(), *FLAGS, *source.links, _processor()])
    start = f"{source.name}-{_digest(made_of.encode())[:16]}-"
    kept = _kept(folder, start, source.check)
    compiler = _compiler()
    if kept is not None or compiler is None:
        return kept
    _build(folder, compiler, start, source)
    kept = _kept(folder, start, source.check)
    if kept is None:
        raise OSError(f"what was just built is not in {folder.path}")
    return kept


def _kept(folder: PrivateFolder, start: str, check: Check) -> ctypes.CDLL | None:
    """Return a library that is there as it was built, by the digest in its name; remove any other."""
    for name in folder.names():
        if name.startswith(start):
            with suppress(OSError), folder.reading(name) as descriptor:
                if name == _named(start, _content(descriptor)):
                    # Never closed: the loader knows libraries by name, and a number must not change its file.
                    with _path_of(os.dup(descriptor)) as path:
                        return check.load(path)
            with suppress(OSError):
                folder.remove(name)
    return None


def _build(folder: PrivateFolder, compiler: str, start: str, source: Source) -> None:
    """Build the library into the folder, if it gives the right results. A compiler that hangs costs once."""
    status = Path(compiler).stat()
    identity = f"{start}{Path(compiler).resolve()} {status.st_size} {status.st_mtime_ns}"
    memory = f"hung-{_digest(identity.encode())[:16]}"
    if memory in folder.names():
        raise _BuildError(f"{compiler} once did not end; remove {folder.path / memory} to try it again")
    try:
        content = _compiled(compiler, source)
        with folder.draft(content) as draft:
            _require_right_results(folder, draft, source.check)
            folder.keep(draft, _named(start, content))
    except subprocess.TimeoutExpired:
        with suppress(OSError), folder.draft(b"") as draft:
            folder.keep(draft, memory)
        raise _BuildError(f"{compiler} did not end within {PATIENCE_S:g} s") from None


def _compiled(compiler: str, source: Source) -> bytes:
    with tempfile.TemporaryDirectory() as scratch:
        made = Path(scratch) / "library.so"
        _run([compiler, *FLAGS, "-o", str(made), str(source.file), *source.links])
        if not made.is_file():
            raise _BuildError(f"{compiler} made no library")
        return made.read_bytes()


def _require_right_results(folder: PrivateFolder, name: str, check: Check) -> None:
    with folder.reading(name) as descriptor, _path_of(descriptor) as path:
        command = [sys.executable or "python3", "-I", "-S", str(check.__file__), path]
        if _run(command, descriptor) != check.RIGHT_DIGEST.encode():
            raise _BuildError("the library gives wrong results")


def _run(command: Sequence[str], *descriptors: int) -> bytes:
    """Return what a program prints; end it, with all that it started, if it does not end by itself."""
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        pass_fds=descriptors,
    ) as process:
        try:
            output, _ = process.communicate(timeout=PATIENCE_S)
        except BaseException:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            raise
    if process.returncode != 0:
        raise _BuildError(f"{command[0]} ended with code {process.returncode}")
    return bytes(output)


@contextmanager
def _path_of(descriptor: int) -> Iterator[str]:
    """Give a path by which this open file is loaded and no other, whatever happens to its name."""
    path = _OPEN_FILES / str(descriptor)
    if path.exists():
        yield str(path)
        return
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch) / "library.so"
        copy.write_bytes(_content(descriptor))
        yield str(copy)


def _content(descriptor: int) -> bytes:
    return os.pread(descriptor, _MAX_BYTES, 0)


def _named(start: str, content: bytes) -> str:
    return f"{start}{_digest(content)}.so"


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _compiler() -> str | None:
    return shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")


def _processor() -> str:
    """Return what sets processors apart: homes are shared by machines with other instructions."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return f"{platform.machine()} {platform.processor()} {platform.node()}"
    told = [line for line in lines if line.startswith(("model name", "flags", "Features", "CPU part"))]
    return "\n".join([platform.machine(), *sorted(set(told))])
