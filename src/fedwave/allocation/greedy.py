"""Greedy, Sec. VII: each device minimises its own cost, Eq. (55), (56), on a block drawn at random."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fedwave.allocation.cpu_frequency import CpuPlan, selfish_cpu_frequencies
from fedwave.allocation.limits import meet_limits_exactly, snr_cap, snr_floor, watts_per_snr, why_no_upload
from fedwave.allocation.power import best_common_snr
from fedwave.allocation.problem import AllocationProblem
from fedwave.allocation.selection_rule import choose_devices, need_rng
from fedwave.allocation.solution import Allocation, Status, build_allocation
from fedwave.units import FloatArray, IntArray


def allocate_greedy(
    problem: AllocationProblem,
    *,
    rng: np.random.Generator | None = None,
    selected: IntArray | Sequence[int] | None = None,
    num_selected: int | None = None,
    selection: str = "contribution",
) -> Allocation:
    """Return the Greedy allocation: random blocks, power by Eq. (56), CPU frequency by Eq. (55).

    With selection="contribution" this is NUFM-Greedy of Fig. 4, with "uniform" RU-Greedy. A device that
    cannot meet a hard limit on its block does not upload, and the status is INFEASIBLE with the reason.
    """
    device = choose_devices(
        problem, selected=selected, num_selected=num_selected, selection=selection, rng=rng
    )
    block = draw_blocks(problem, device.size, rng=need_rng(rng, 'method "greedy"'))
    return allocate_on_blocks(
        problem,
        method="greedy",
        device=device,
        block=block,
        snr=selfish_snr(problem, device, block),
        cpu=selfish_cpu_frequencies(problem),
    )


def draw_blocks(problem: AllocationProblem, count: int, *, rng: np.random.Generator) -> IntArray:
    """Return ``count`` distinct blocks, uniformly at random."""
    return np.asarray(rng.permutation(problem.num_blocks)[:count], dtype=np.int64)


def selfish_snr(problem: AllocationProblem, device: IntArray, block: IntArray) -> FloatArray:
    """Return the SNR at each device's own best power, Eq. (56): argmin of (eta_1 p + eta_2) S / rate.

    It is Lemma 6 with one device. (56) prints log2((1 + hp) / (I + BN0)); the rate is that of Eq. (25).
    """
    cap, floor = snr_cap(problem, device, block), snr_floor(problem)
    watts = watts_per_snr(problem, device, block)
    snr = np.zeros(device.size)
    for k in np.flatnonzero(cap > 0):
        snr[k] = best_common_snr(
            problem.energy_weight * float(watts[k]),
            delay_weight=problem.delay_weight,
            nat_time_s=1.0,
            smallest=floor,
            largest=float(cap[k]),
        )
    return snr


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
    power = meet_limits_exactly(problem, device, block, snr * watts_per_snr(problem, device, block))
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
