"""One problem with stacked arrays: the problems of all draws, checked at once where that is enough."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import fields, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fedwave.allocation.problem import AllocationProblem
from fedwave.errors import ProblemError, did_you_mean
from fedwave.units import real_array

# Fields whose own numbers are all there is to check, and on which nothing depends that a problem remembers.
_CHECKED_AT_ONCE = ("contribution", "channel_gain")

_Array = np.ndarray[Any, Any]


def problem_draws(problem: AllocationProblem, stacked: Mapping[str, ArrayLike]) -> list[AllocationProblem]:
    """Return the problem with each entry of the stacked arrays in turn, as ``replace`` makes them."""
    arrays = _same_length(stacked)
    at_once = _checked_at_once(problem, arrays)
    num_draws = len(next(iter(arrays.values())))
    if at_once is None:
        return [
            replace(problem, **{name: array[draw] for name, array in arrays.items()})
            for draw in range(num_draws)
        ]
    _ = problem.fastest_compute_s, problem.counts_energy, problem.longest_delay_s  # remembered by the copies
    draws = [copy(problem) for _ in range(num_draws)]
    for name, array in at_once.items():
        for draw, values in zip(draws, array, strict=True):
            object.__setattr__(draw, name, values)
    return draws


def _same_length(stacked: Mapping[str, ArrayLike]) -> dict[str, _Array]:
    """Return the arrays of some fields, with equally many draws each."""
    known = [field.name for field in fields(AllocationProblem)]
    arrays: dict[str, _Array] = {}
    for name, values in stacked.items():
        if name not in known:
            raise ProblemError(
                f"stacked names no field of a problem, got {name!r}. {did_you_mean(name, known)}"
            )
        arrays[name] = np.asarray(values)
        if arrays[name].ndim == 0:
            raise ProblemError(f"stacked {name} must have an axis of draws, got one number. Use a list.")
    lengths = {name: len(array) for name, array in arrays.items()}
    if len(set(lengths.values())) != 1:
        raise ProblemError(f"stacked arrays must have equally many draws, got {lengths or 'no arrays'}.")
    return arrays


def _checked_at_once(problem: AllocationProblem, arrays: Mapping[str, _Array]) -> dict[str, _Array] | None:
    """Return the arrays as the problems keep them, or None where each problem has to be checked by itself.

    That is so for other fields, for whatever is wrong (the error then names the first wrong draw's value),
    and where problems are warned of.
    """
    if type(problem) is not AllocationProblem or problem.warnings:
        return None
    kept = {}
    for name, array in arrays.items():
        if name not in _CHECKED_AT_ONCE or array.dtype.kind not in "iuf":
            return None
        values = real_array(array, name)
        if values.shape[1:] != getattr(problem, name).shape or not np.isfinite(values).all():
            return None
        if name != "contribution" and values.min(initial=0.0) < 0.0:
            return None
        kept[name] = values.view()
        kept[name].flags.writeable = False
    return kept
