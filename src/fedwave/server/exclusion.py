"""Devices that the server does not ask for a while, as an array that a checkpoint can hold."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fedwave.server.planner import PlannerState
from fedwave.units import IntArray

KEY = "excluded_until"  # in the planner's state; (n,), the round from which a device takes part again


def excluded_until(state: PlannerState, num_devices: int) -> IntArray:
    """Return the round from which each device takes part; 0 for those that were never excluded."""
    found = state.get(KEY)
    return np.zeros(num_devices, dtype=np.int64) if found is None else np.asarray(found, dtype=np.int64)


def exclude(
    state: PlannerState, device_index: Sequence[int], *, until: int, num_devices: int
) -> PlannerState:
    """Return the state with these devices excluded before round ``until``."""
    rounds = excluded_until(state, num_devices).copy()
    rounds[list(device_index)] = until
    return {**state, KEY: rounds}


def still_excluded(before: PlannerState, after: PlannerState) -> PlannerState:
    """Return a planner's new state with the exclusions of the old one: planners know nothing of them."""
    return {**after, KEY: before[KEY]} if KEY in before else after
