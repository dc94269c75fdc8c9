"""Whether a library has the compiled search and it finds what it should: a program of its own.

A library that a broken compiler made may crash whoever loads it, so it is first loaded by a process that may
crash: ``python search_check.py LIBRARY`` prints the digest of some answers. It needs no other package.
"""

from __future__ import annotations

import ctypes
import hashlib
import sys

RIGHT_DIGEST = "7493f83d1f705238a016aea799e12b0604951f141042c0ff96305f66bc4db46c"
ROOM_TRACE = 256  # incumbents of a search; one finds a dozen


class Problem(ctypes.Structure):
    """What the search takes: ``problem`` of search.c."""

    _fields_ = (
        ("blocks", ctypes.c_int64),
        ("width", ctypes.c_int64),
        ("devices", ctypes.c_int64),
        ("barred", ctypes.c_int64),
        ("contribution", ctypes.c_void_p),
        ("unit_cost", ctypes.c_void_p),
        ("snr_cap", ctypes.c_void_p),
        ("device", ctypes.c_void_p),
        ("favourite", ctypes.c_void_p),
        ("worth", ctypes.c_void_p),
        ("circuit_cost", ctypes.c_void_p),
        ("is_shared", ctypes.c_int64),
        ("has_one_circuit", ctypes.c_int64),
        ("has_kinks", ctypes.c_int64),
        ("max_matchings", ctypes.c_int64),
        ("delay_weight", ctypes.c_double),
        ("nat_delay_s", ctypes.c_double),
        ("floor", ctypes.c_double),
        ("largest_contribution", ctypes.c_double),
        ("least_favourite", ctypes.c_double),
        ("relative_gap", ctypes.c_double),
        ("compute_cost", ctypes.c_double),
    )


class Answer(ctypes.Structure):
    """What it finds: ``answer`` of search.c."""

    _fields_ = (
        ("value", ctypes.c_double),
        ("snr", ctypes.c_double),
        ("upper_bound", ctypes.c_double),
        ("matchings", ctypes.c_int64),
        ("steps", ctypes.c_int64),
        ("traced", ctypes.c_int64),
        ("rematched", ctypes.c_int64),
    )


def load(path: str) -> ctypes.CDLL:
    """Return the library at a path; raise an ``OSError`` if it is none, or has no search."""
    library = ctypes.CDLL(path)
    function = getattr(library, "fedwave_search", None)
    if function is None:
        raise OSError("it has no function fedwave_search")
    pointer = ctypes.c_void_p
    function.argtypes, function.restype = [pointer, pointer, pointer, pointer, ctypes.c_int64], ctypes.c_int64
    return library


def results(library: ctypes.CDLL) -> list[list[float]]:
    """Return status, columns and rounded values of two searches: on lines, and where pairs may be faster."""
    return [_found(library, blocks, may_be_faster) for blocks in (3, 5, 8) for may_be_faster in (False, True)]


def digest_of(found: list[list[float]]) -> str:
    """Return the digest of results."""
    return hashlib.sha256(repr(found).encode()).hexdigest()


def _found(library: ctypes.CDLL, blocks: int, may_be_faster: bool) -> list[float]:
    width = 17
    gain = [(k * k * 31 + 7 * k + 5) % 61 / 61 + 0.1 for k in range(width)]
    noise = [1.0 + (m * m * 17 + m) % 23 / 23 for m in range(blocks)]
    contribution = _floats([(k * k * 13 + k + 3) % 47 / 5 + 0.2 for k in range(width)])
    cost = [noise[m] / gain[k] for m in range(blocks) for k in range(width)]
    cap = [gain[k] * (0.2 + k % 4 / 3) / noise[m] for m in range(blocks) for k in range(width)]
    favourite = [0.3 * value for value in cap]
    each = [contribution[k] for _ in range(blocks) for k in range(width)]
    worth = _floats([u - value - 0.2 for u, value in zip(each, cost, strict=True)])
    arrays = [_floats(values) for values in (cost, cap, favourite, [0.01] * len(cap))]
    problem, answer = Problem(), Answer()
    problem.blocks, problem.width, problem.devices = blocks, width, width
    problem.contribution = ctypes.addressof(contribution)
    problem.unit_cost, problem.snr_cap = ctypes.addressof(arrays[0]), ctypes.addressof(arrays[1])
    if may_be_faster:
        problem.favourite, problem.circuit_cost = ctypes.addressof(arrays[2]), ctypes.addressof(arrays[3])
        problem.worth = ctypes.addressof(worth)
        problem.has_one_circuit, problem.has_kinks = 1, blocks % 2
        problem.least_favourite = min(favourite)
    problem.is_shared, problem.max_matchings = 1, 200
    problem.delay_weight, problem.nat_delay_s, problem.floor = 1.0, 0.7, 0.01
    problem.largest_contribution = sum(sorted(contribution)[-blocks:])
    problem.relative_gap, problem.compute_cost = 1e-6, 0.5
    columns, trace = (ctypes.c_int64 * blocks)(), _floats([0.0] * ROOM_TRACE)
    status = library.fedwave_search(
        ctypes.addressof(problem), ctypes.addressof(answer), columns, trace, ROOM_TRACE
    )
    # Libraries of logarithms differ in their last bits.
    values = [round(value, 9) for value in (answer.value, answer.snr, answer.upper_bound)]
    return [float(status), *map(float, columns), *values]


def _floats(content: list[float]) -> ctypes.Array[ctypes.c_double]:
    return (ctypes.c_double * len(content))(*content)


if __name__ == "__main__":
    print(digest_of(results(load(sys.argv[1]))), end="")
