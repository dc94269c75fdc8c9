"""The compiled kernels for what a layer does beside products.

The machine's own C compiler builds them at first use, and they are kept in the user's cache. Without a
compiler, or with ``FEDWAVE_COMPILE=0``, everything runs on torch alone, slower and to the same bits.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import torch
from torch import Tensor

SWITCH = "FEDWAVE_COMPILE"
_SOURCE = Path(__file__).with_name("kernels.c")
# No fused multiply-adds: they would round otherwise than torch. Comparisons need not trap: so they vectorise.
_FLAGS = ("-O3", "-march=native", "-ffp-contract=off", "-fno-trapping-math", "-shared", "-fPIC", "-std=c11")
_SIGNATURES = {  # p: pointer, f: float, n: int64
    "fedwave_pool": "ppfnnnnnnpp",
    "fedwave_unpool": "ppppfnnnnp",
    "fedwave_pick": "ppnnnnp",
    "fedwave_patches": "pnnnnp",
    "fedwave_overlap": "pnnnnp",
}
_TYPES = {"p": ctypes.c_void_p, "f": ctypes.c_float, "n": ctypes.c_int64}


def kernels_for(values: Tensor) -> ctypes.CDLL | None:
    """Return the kernels if there are any for such values: float32 in the CPU's memory."""
    is_here = values.device.type == "cpu" and values.dtype == torch.float32
    return kernels() if is_here else None


@cache
def kernels() -> ctypes.CDLL | None:
    """Return the kernels, or nothing where they cannot be built."""
    if os.environ.get(SWITCH, "1") == "0":
        return None
    try:
        library = ctypes.CDLL(str(_built()))
    except (OSError, RuntimeError, subprocess.SubprocessError):  # no compiler, no cache, no home
        return None
    for name, signature in _SIGNATURES.items():
        function = getattr(library, name)
        function.argtypes, function.restype = [_TYPES[letter] for letter in signature], None
    return library


def _built() -> Path:
    """Return the shared library for this source and this processor; build it if it is not there yet."""
    folder = _cache_folder()
    made_of = "\n".join([_SOURCE.read_text(), *_FLAGS, _processor()])
    library = folder / f"kernels-{hashlib.sha256(made_of.encode()).hexdigest()[:16]}.so"
    if library.exists():
        return library
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        raise FileNotFoundError("no C compiler")
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        made = Path(scratch) / library.name
        subprocess.run(
            [compiler, *_FLAGS, "-o", str(made), str(_SOURCE)], check=True, capture_output=True, timeout=60
        )
        made.replace(library)  # at once: two processes may build at the same time
    return library


def _cache_folder() -> Path:
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "fedwave" / "compiled"


def _processor() -> str:
    """Return what sets processors apart: homes are shared by machines with other instructions."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return f"{platform.machine()} {platform.processor()} {platform.node()}"
    told = [line for line in lines if line.startswith(("model name", "flags", "Features", "CPU part"))]
    return "\n".join([platform.machine(), *sorted(set(told))])
