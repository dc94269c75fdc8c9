"""All methods on one problem, with the time that each took."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fedwave.allocation.methods import METHODS, allocate
from fedwave.allocation.problem import AllocationProblem
from fedwave.allocation.solution import Allocation
from fedwave.errors import ProblemError, did_you_mean
from fedwave.rng import Stream, generator
from fedwave.units import IntArray


@dataclass(frozen=True, kw_only=True, eq=False)
class TimedAllocation:
    """An allocation and the wall-clock time its method took."""

    allocation: Allocation
    seconds: float


def methods_for(problem: AllocationProblem) -> list[str]:
    """Return the names of the methods that know the problem's access, and the sizes of its uploads."""
    return [
        name
        for name, method in METHODS.items()
        if problem.access in method.accesses and (method.takes_offers or not problem.has_own_bits)
    ]


def compare_methods(
    problem: AllocationProblem,
    methods: Iterable[str] | None = None,
    *,
    seed: int,
    selected: IntArray | Sequence[int] | None = None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
) -> dict[str, TimedAllocation]:
    """Return each named method's allocation of the problem, by default of all that know its access.

    Each method draws from a generator of its own with the same seed, so none changes another's answer.
    ``options`` are those of each method by its name, e.g. ``{"optimal": {"relative_gap": 1e-3}}``.
    """
    names = list(dict.fromkeys(methods_for(problem) if methods is None else methods))
    options = options or {}
    for name in options:
        if name not in names:
            raise ProblemError(f"options name no method compared, got {name!r}. {did_you_mean(name, names)}")
    found = {}
    for name in names:
        rng = generator(seed, Stream.ALLOCATION)
        start = time.perf_counter()
        allocation = allocate(problem, name, rng=rng, selected=selected, **options.get(name, {}))
        found[name] = TimedAllocation(allocation=allocation, seconds=time.perf_counter() - start)
    return found
