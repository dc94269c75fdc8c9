"""Greedy, Sec. VII: each device minimises its own cost, Eq. (55), (56), on a block drawn at random."""

from __future__ import annotations

import numpy as np

from fedwave.allocation.baselines.on_blocks import allocate_on_blocks, draw_blocks
from fedwave.allocation.baselines.selfish_power import selfish_snr
from fedwave.allocation.cpu_frequency import selfish_cpu_frequencies
from fedwave.allocation.problem import AllocationProblem
from fedwave.allocation.solution import Allocation
from fedwave.units import IntArray


def allocate_greedy(
    problem: AllocationProblem, *, selected: IntArray, rng: np.random.Generator
) -> Allocation:
    """Return the Greedy allocation: random blocks, power by Eq. (56), CPU frequency by Eq. (55).

    A device that cannot meet a hard limit on its block does not upload, and the status is INFEASIBLE with
    the reason. It plans for no losses: see ``AllocationProblem.without_risks``.
    """
    whole, problem = problem, problem.without_risks
    block = draw_blocks(problem, selected.size, rng=rng)
    return allocate_on_blocks(
        problem,
        whole,
        method="greedy",
        device=selected,
        block=block,
        snr=selfish_snr(problem, selected, block),
        cpu=selfish_cpu_frequencies(problem),
    )
