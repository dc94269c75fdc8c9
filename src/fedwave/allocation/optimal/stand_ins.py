"""Groups of similar devices, each with a stand-in that is at least as good as all of them.

A stand-in has the largest contribution of its group, the largest gain, power, energy limit and deadline, and
the least price and circuit power: whatever a device of the group may do on a block, it may do as well, for no
less. So what it would make at some duals bounds what each of the group makes there, whatever the link. Groups
have equal sizes and are boxes in the space of what devices differ in, small ones within larger ones.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from fedwave.allocation.problem import AllocationProblem
from fedwave.units import FloatArray, IntArray


def near_together(problem: AllocationProblem, device: IntArray, size: int) -> IntArray:
    """Return the devices in an order in which runs of ``size``, of twice as many, and so on, are alike.

    Groups are halved at the median of one criterion after the other.
    """
    ranks = [_rank(values[device]) for values, _ in _criteria(problem).values()]
    ranks = [rank for rank in ranks if rank.any()]
    order = np.arange(device.size)
    width = size
    while width < device.size:
        width *= 2
    turn = 0
    while ranks and width > size:
        group = np.arange(order.size) // width
        order = order[np.argsort(group * order.size + ranks[turn % len(ranks)][order], kind="stable")]
        width, turn = width // 2, turn + 1
    return device[order]


def stand_ins(problem: AllocationProblem, device: IntArray, size: int) -> tuple[AllocationProblem, IntArray]:
    """Return the problem with each device as good as the stand-in of its run of ``size``, and one of each."""
    starts = np.arange(0, device.size, size)
    group = np.arange(device.size) // size
    best: dict[str, Any] = {}
    for name, (values, is_better_large) in _criteria(problem).items():
        choose = np.maximum if is_better_large else np.minimum
        best[name] = values.copy()
        best[name][device] = choose.reduceat(values[device], starts)[group]
    if "circuit_power_w" in best:
        best["radio"] = replace(problem.radio, circuit_power_w=best.pop("circuit_power_w"))
    return replace(problem, **best), device[starts]


def _criteria(problem: AllocationProblem) -> dict[str, tuple[FloatArray, bool]]:
    """Return what devices differ in, each with whether more of it is better."""
    every: dict[str, tuple[Any, bool]] = {
        "contribution": (problem.contribution, True),
        "channel_gain": (problem.channel_gain, True),
        "max_power_w": (problem.max_power_w, True),
        "max_energy_j": (problem.max_energy_j, True),
        "max_delay_s": (problem.max_delay_s, True),
        "energy_weight": (problem.energy_weight, False),
        "circuit_power_w": (problem.radio.circuit_power_w, False),
    }
    return {name: (values, more) for name, (values, more) in every.items() if isinstance(values, np.ndarray)}


def _rank(values: FloatArray) -> IntArray:
    """Return the place of each value in order; all 0 where they are the same."""
    rank = np.zeros(values.size, dtype=np.int64)
    if values.size and values.min() < values.max():
        rank[np.argsort(values, kind="stable")] = np.arange(values.size)
    return rank
