"""Random, Sec. VII: blocks, powers and CPU frequencies uniformly from their feasible regions."""

from __future__ import annotations

import numpy as np

from fedwave.allocation.baselines.on_blocks import allocate_on_blocks, draw_blocks
from fedwave.allocation.computing.cpu_frequency import random_cpu_frequencies
from fedwave.allocation.problem import AllocationProblem
from fedwave.allocation.solution import Allocation
from fedwave.allocation.uploads.snr_range import least_affordable_snr, own_snr_floor, snr_cap
from fedwave.units import IntArray


def allocate_random(
    problem: AllocationProblem, *, selected: IntArray, rng: np.random.Generator
) -> Allocation:
    """Return the Random allocation of Sec. VII for the selected devices.

    All devices compute, so all draw a CPU frequency from (0, nu_max]; powers come from (0, p_max], cut to
    the part that meets the hard limits. A device for which that part is empty does not upload, and the
    status is INFEASIBLE.
    """
    block = draw_blocks(problem, selected.size, rng=rng)
    cap, floor = snr_cap(problem, selected, block), own_snr_floor(problem, selected)
    share = 1.0 - rng.random(selected.size)  # in (0, 1]: power 0 would never finish
    # Power is proportional to SNR on a given block, so a uniform SNR is a uniform power.
    lowest = np.minimum(np.maximum(floor, least_affordable_snr(problem, selected, block)), cap)
    return allocate_on_blocks(
        problem,
        method="random",
        device=selected,
        block=block,
        snr=np.where(cap > 0, lowest + share * (cap - lowest), 0.0),
        cpu=random_cpu_frequencies(problem, rng=rng),
    )
