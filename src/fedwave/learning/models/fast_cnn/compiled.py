"""The compiled kernels for what a layer does beside products.

The machine's own C compiler builds them at first use, and they are kept in the user's cache. Without a
compiler, or with ``FEDWAVE_COMPILE=0``, everything runs on torch alone, slower and to the same bits.

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
from functools import cache
from pathlib import Path

import torch
from torch import Tensor

from fedwave.learning.models.fast_cnn import kernel_check
from fedwave.user_cache import PrivateFolder, cache_root, private_folder

SWITCH = "FEDWAVE_COMPILE"
PATIENCE_S = 30.0  # with a compiler, which needs half a second on a quiet machine
_SOURCE = Path(__file__).with_name("kernels.c")
# No fused multiply-adds: they would round otherwise than torch. Comparisons need not trap: so they vectorise.
_FLAGS = ("-O3", "-march=native", "-ffp-contract=off", "-fno-trapping-math", "-shared", "-fPIC", "-std=c11")
_MAX_BYTES = 1 << 24  # of a library, which has some 32 KB
_OPEN_FILES = Path("/proc/self/fd")
_ONE_AT_A_TIME = threading.Lock()

logger = logging.getLogger("fedwave")


class _BuildError(Exception):
    """The compiler did not make a library that works."""


def kernels_for(values: Tensor) -> ctypes.CDLL | None:
    """Return the kernels if there are any for such values: float32 in the CPU's memory."""
    is_here = values.device.type == "cpu" and values.dtype == torch.float32
    return kernels() if is_here else None


def kernels() -> ctypes.CDLL | None:
    """Return the kernels, or nothing where they cannot be built; what is wrong is said once."""
    with _ONE_AT_A_TIME:
        return _kernels()


@cache
def _kernels() -> ctypes.CDLL | None:
    if os.environ.get(SWITCH, "1") == "0" or not hasattr(os, "geteuid"):
        return None
    try:
        try:
            with private_folder(cache_root(), "fedwave", "compiled") as folder:
                return _kept_or_built(folder)
        except OSError as error:
            if _compiler() is None:
                return None
            logger.warning(
                "the cache is not used (%s); the CNN's kernels are built for this process alone. Mend the "
                "folder, or set XDG_CACHE_HOME to one of your own.",
                error,
            )
            with tempfile.TemporaryDirectory() as scratch, private_folder(Path(scratch)) as folder:
                return _kept_or_built(folder)
    except (_BuildError, OSError) as error:
        logger.warning(
            "the CNN's kernels were not built (%s); torch alone is slower, to the same bits. Mend the C "
            "compiler, or set %s=0 to do without it.",
            error,
            SWITCH,
        )
    return None


def _kept_or_built(folder: PrivateFolder) -> ctypes.CDLL | None:
    """Return the library for this source and this processor; build it if it is not there yet."""
    made_of = "\n".join([_SOURCE.read_text(), *_FLAGS, _processor()])
    start = f"kernels-{_digest(made_of.encode())[:16]}-"
    kept = _kept(folder, start)
    compiler = _compiler()
    if kept is not None or compiler is None:
        return kept
    _build(folder, compiler, start)
    kept = _kept(folder, start)
    if kept is None:
        raise OSError(f"what was just built is not in {folder.path}")
    return kept


def _kept(folder: PrivateFolder, start: str) -> ctypes.CDLL | None:
    """Return a library that is there as it was built, by the digest in its name; remove any other."""
    for name in folder.names():
        if name.startswith(start):
            with suppress(OSError), folder.reading(name) as descriptor:
                if name == _named(start, _content(descriptor)):
                    # Never closed: the loader knows libraries by name, and a number must not change its file.
                    with _path_of(os.dup(descriptor)) as path:
                        return kernel_check.load(path)
            with suppress(OSError):
                folder.remove(name)
    return None


def _build(folder: PrivateFolder, compiler: str, start: str) -> None:
    """Build the library into the folder, if it gives the right results. A compiler that hangs costs once."""
    status = Path(compiler).stat()
    identity = f"{start}{Path(compiler).resolve()} {status.st_size} {status.st_mtime_ns}"
    memory = f"hung-{_digest(identity.encode())[:16]}"
    if memory in folder.names():
        raise _BuildError(f"{compiler} once did not end; remove {folder.path / memory} to try it again")
    try:
        content = _compiled(compiler)
        with folder.draft(content) as draft:
            _require_right_results(folder, draft)
            folder.keep(draft, _named(start, content))
    except subprocess.TimeoutExpired:
        with suppress(OSError), folder.draft(b"") as draft:
            folder.keep(draft, memory)
        raise _BuildError(f"{compiler} did not end within {PATIENCE_S:g} s") from None


def _compiled(compiler: str) -> bytes:
    with tempfile.TemporaryDirectory() as scratch:
        made = Path(scratch) / "kernels.so"
        _run([compiler, *_FLAGS, "-o", str(made), str(_SOURCE)])
        if not made.is_file():
            raise _BuildError(f"{compiler} made no library")
        return made.read_bytes()


def _require_right_results(folder: PrivateFolder, name: str) -> None:
    with folder.reading(name) as descriptor, _path_of(descriptor) as path:
        check = [sys.executable or "python3", "-I", "-S", kernel_check.__file__, path]
        if _run(check, descriptor) != kernel_check.RIGHT_DIGEST.encode():
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
        copy = Path(scratch) / "kernels.so"
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
