"""Who uploads in the baselines that do not choose by themselves: NUFM's ranking or a uniform draw."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fedwave.allocation.problem import AllocationProblem
from fedwave.errors import ProblemError, did_you_mean
from fedwave.units import BoolArray, IntArray

SELECTIONS = ("contribution", "uniform")  # NUFM, Eq. (22), and RU of Fig. 4


def choose_devices(
    problem: AllocationProblem,
    *,
    selected: IntArray | Sequence[int] | None,
    num_selected: int | None,
    selection: str,
    rng: np.random.Generator | None,
) -> IntArray:
    """Return the sorted indices of the devices to serve: ``selected``, or as many as asked for by the rule.

    By default as many as there are blocks. "contribution" takes the largest u, Eq. (22), ties by index;
    "uniform" draws without replacement.
    """
    if selected is not None:
        if num_selected is not None:
            raise ProblemError("Give selected or num_selected, not both.")
        chosen = check_selected(problem, selected)
        _check_count(problem, chosen.size, "selected")
        return chosen
    limit = min(problem.num_devices, problem.num_blocks)
    count = limit if num_selected is None else num_selected
    _check_count(problem, count, "num_selected")
    if selection == "contribution":
        return np.sort(np.argsort(-problem.contribution, kind="stable")[:count])
    if selection == "uniform":
        drawn = need_rng(rng, "selection='uniform'").choice(problem.num_devices, size=count, replace=False)
        return np.sort(drawn.astype(np.int64))
    raise ProblemError(f"selection is not known, got {selection!r}. {did_you_mean(selection, SELECTIONS)}")


def check_selected(problem: AllocationProblem, selected: IntArray | Sequence[int]) -> IntArray:
    """Return the given device indices, sorted, or raise if one is repeated or out of range."""
    array = np.asarray(selected)
    if array.size == 0:
        return np.zeros(0, dtype=np.int64)
    if array.ndim != 1 or not np.issubdtype(array.dtype, np.integer):
        raise ProblemError(
            f"selected must be a list of device indices, got {array.dtype} of shape {array.shape}. "
            "From a mask, use numpy.flatnonzero(mask)."
        )
    chosen = np.unique(array.astype(np.int64))
    if chosen.size < array.size:
        raise ProblemError("selected must name each device once, got repeated indices. Use numpy.unique.")
    if chosen[0] < 0 or chosen[-1] >= problem.num_devices:
        wrong = int(chosen[0] if chosen[0] < 0 else chosen[-1])
        raise ProblemError(f"selected must lie in 0..{problem.num_devices - 1}, got {wrong}.")
    return chosen


def upload_mask(problem: AllocationProblem, selected: IntArray | Sequence[int] | None) -> BoolArray | None:
    """Return a mask of the given devices, or None if all may upload."""
    if selected is None:
        return None
    mask = np.zeros(problem.num_devices, dtype=bool)
    mask[check_selected(problem, selected)] = True
    return mask


def need_rng(rng: np.random.Generator | None, who: str) -> np.random.Generator:
    """Return the generator, or raise if none was given."""
    if rng is None:
        raise ProblemError(
            f"{who} draws at random and needs rng=, got None. Give numpy.random.default_rng(seed)."
        )
    return rng


def _check_count(problem: AllocationProblem, count: int, name: str) -> None:
    if count < 0 or count > problem.num_devices:
        raise ProblemError(f"{name} must lie in 0..{problem.num_devices} devices, got {count}.")
    if count > problem.num_blocks:
        raise ProblemError(
            f"{name} must not exceed the {problem.num_blocks} blocks, got {count}. "
            "One block carries one device."
        )
