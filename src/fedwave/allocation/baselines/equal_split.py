"""equal-split: the given devices get equal shares of the band at full power, whatever their channels.

With one block each the first has the first block; over whole blocks each has as many as go round; over slots
each has the whole band in turn: round robin. It marks the lower end of what needs no thought.
"""

from __future__ import annotations

import numpy as np

from fedwave.allocation.access.rules import allocation_of, equal_split
from fedwave.allocation.baselines.on_blocks import allocate_on_blocks
from fedwave.allocation.computing.cpu_frequency import solve_cpu_frequencies
from fedwave.allocation.problem import AllocationProblem
from fedwave.allocation.solution import Allocation
from fedwave.allocation.uploads.snr_range import snr_caps, watts_per_snr
from fedwave.allocation.uploads.upload_plan import hurried
from fedwave.units import IntArray


def allocate_equal_split(problem: AllocationProblem, *, selected: IntArray) -> Allocation:
    """Return the allocation of equal shares to these devices; who cannot upload in time does not."""
    if problem.access != "one-block":
        return allocation_of(problem, equal_split(problem, selected), method="equal-split")
    block = np.arange(selected.size)
    snr = snr_caps(problem, selected, block)[0]
    device, block, snr = selected[snr > 0.0], block[snr > 0.0], snr[snr > 0.0]
    power_w = snr * watts_per_snr(problem, device, block)
    return allocate_on_blocks(
        problem,
        method="equal-split",
        device=device,
        block=block,
        snr=snr,
        cpu=hurried(problem, solve_cpu_frequencies(problem), device, block, power_w),
    )
