"""What most baselines share: an allocation on blocks that are already settled, each device at its own SNR."""

from __future__ import annotations

import numpy as np

from fedwave.allocation.computing.cpu_frequency import CpuPlan
from fedwave.allocation.problem import AllocationProblem
from fedwave.allocation.solution import Allocation, Status, build_allocation
from fedwave.allocation.uploads.infeasibility import why_no_upload
from fedwave.allocation.uploads.snr_range import meet_limits, watts_per_snr
from fedwave.units import FloatArray, IntArray


def draw_blocks(problem: AllocationProblem, count: int, *, rng: np.random.Generator) -> IntArray:
    """Return ``count`` distinct blocks, uniformly at random."""
    return np.asarray(rng.permutation(problem.num_blocks)[:count], dtype=np.int64)


def allocate_on_blocks(
    problem: AllocationProblem,
    *,
    method: str,
    device: IntArray,
    block: IntArray,
    snr: FloatArray,
    cpu: CpuPlan,
    iterations: int = 0,
) -> Allocation:
    """Return the allocation of devices to given blocks at given SNRs; SNR 0: the device cannot upload."""
    can = snr > 0
    reason = cpu.reason
    if not reason and not can.all():
        first = int(np.argmin(can))
        reason = why_no_upload(problem, int(device[first]), block[first : first + 1])
        reason += f" on block {block[first]}, so it does not upload"
        others = int(np.count_nonzero(~can)) - 1
        reason += f" (nor do {others} others)" if others else ""
    device, block, snr = device[can], block[can], snr[can]
    power = meet_limits(problem, device, block, snr * watts_per_snr(problem, device, block))
    return build_allocation(
        problem,
        method=method,
        device=device,
        block=block,
        power_w=power,
        cpu_frequency_hz=cpu.cpu_frequency_hz,
        status=Status.INFEASIBLE if reason else Status.FEASIBLE,
        reason=reason,
        iterations=iterations,
    )
