"""The devices that a caller names: checked, as indices to serve or as a mask to choose from."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fedwave.allocation.problem import AllocationProblem
from fedwave.errors import ProblemError
from fedwave.units import BoolArray, IntArray


def devices_to_serve(problem: AllocationProblem, selected: IntArray | Sequence[int] | None) -> IntArray:
    """Return the sorted devices to serve: those given, by default the M largest contributions, Eq. (22).

    Ties go by index.
    """
    if selected is None:
        return np.sort(np.argsort(-problem.contribution, kind="stable")[: problem.num_blocks])
    chosen = check_selected(problem, selected)
    if chosen.size > problem.num_blocks:
        raise ProblemError(
            f"selected must not exceed the {problem.num_blocks} blocks, got {chosen.size} devices. "
            "One block carries one device."
        )
    return chosen


def upload_mask(problem: AllocationProblem, selected: IntArray | Sequence[int] | None) -> BoolArray | None:
    """Return a mask of the given devices, or None if all may upload."""
    if selected is None:
        return None
    mask = np.zeros(problem.num_devices, dtype=bool)
    mask[check_selected(problem, selected)] = True
    return mask


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
