"""Whether a library has the kernels and they compute what they should: a program of its own.

A library that a broken compiler made may crash whoever loads it, so it is first loaded by a process that may
crash: ``python kernel_check.py LIBRARY`` prints the digest of some results. It needs no other package.
"""

from __future__ import annotations

import ctypes
import hashlib
import sys

SIGNATURES = {  # p: pointer, f: float, n: int64
    "fedwave_pool": "ppfnnnnnnpp",
    "fedwave_unpool": "ppppfnnnnp",
    "fedwave_pick": "ppnnnnp",
    "fedwave_patches": "pnnnnp",
    "fedwave_overlap": "pnnnnp",
}
_TYPES = {"p": ctypes.c_void_p, "f": ctypes.c_float, "n": ctypes.c_int64}

EXTENT = IMAGES, HEIGHT, WIDTH, CHANNELS = 2, 5, 4, 19  # odd and even sides, whole vectors and a rest
SLOPE = 0.25
RIGHT_DIGEST = "b2d2643ce067c4450b420b022d0b1b87da7baad88cba3df9d2b661aa01454d88"


def load(path: str) -> ctypes.CDLL:
    """Return the library at a path; raise an ``OSError`` if it is none, or has not all kernels."""
    library = ctypes.CDLL(path)
    for name, signature in SIGNATURES.items():
        function = getattr(library, name, None)
        if function is None:
            raise OSError(f"it has no function {name}")
        function.argtypes, function.restype = [_TYPES[letter] for letter in signature], None
    return library


def values(count: int, seed: int) -> list[float]:
    """Return numbers that float32 holds exactly, with equal ones among them."""
    return [(i * i * 31 + i * 17 + seed) % 61 / 4.0 - 7.5 for i in range(count)]


def results(library: ctypes.CDLL) -> list[list[float]]:
    """Return what the kernels make of some numbers: of the pool and its derivatives, and of patches."""
    pixels, windows = IMAGES * HEIGHT * WIDTH * CHANNELS, IMAGES * 3 * 2 * CHANNELS
    responses, bias = _floats(values(pixels, 1)), _floats(values(IMAGES * CHANNELS, 2))
    outputs, places = _floats([0.0] * windows), (ctypes.c_uint8 * windows)()
    library.fedwave_pool(responses, bias, SLOPE, *EXTENT, 1, CHANNELS, outputs, places)
    through, spread = _floats([0.0] * windows), _floats([0.0] * pixels)
    library.fedwave_unpool(_floats(values(windows, 3)), outputs, places, through, SLOPE, *EXTENT, spread)
    picked = _floats(values(windows, 4))
    library.fedwave_pick(responses, places, *EXTENT, picked)
    patches, overlap = _floats([0.0] * (9 * pixels)), _floats([0.0] * pixels)
    library.fedwave_patches(responses, *EXTENT, patches)
    library.fedwave_overlap(_floats(values(9 * pixels, 5)), *EXTENT, overlap)
    return [list(one) for one in (outputs, through, spread, picked, patches, overlap)]


def digest_of(found: list[list[float]]) -> str:
    """Return the digest of results."""
    return hashlib.sha256(repr(found).encode()).hexdigest()


def _floats(content: list[float]) -> ctypes.Array[ctypes.c_float]:
    return (ctypes.c_float * len(content))(*content)


if __name__ == "__main__":
    print(digest_of(results(load(sys.argv[1]))), end="")
