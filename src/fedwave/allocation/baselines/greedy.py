"""Greedy, Sec. VII: each device minimises its own cost, Eq. (55), (56), on a block drawn at random."""

from __future__ import annotations

import numpy as np

from fedwave.allocation.baselines.on_blocks import allocate_on_blocks, draw_blocks
from fedwave.allocation.computing.cpu_frequency import selfish_cpu_frequencies
from fedwave.allocation.problem import AllocationProblem
from fedwave.allocation.solution import Allocation
from fedwave.allocation.uploads.power import best_common_snr
from fedwave.allocation.uploads.snr_range import own_snr_floor, snr_cap, watts_per_snr
from fedwave.units import FloatArray, IntArray


def allocate_greedy(
    problem: AllocationProblem, *, selected: IntArray, rng: np.random.Generator
) -> Allocation:
    """Return the Greedy allocation: random blocks, power by Eq. (56), CPU frequency by Eq. (55).

    A device that cannot meet a hard limit on its block does not upload, and the status is INFEASIBLE with
    the reason.
    """
    block = draw_blocks(problem, selected.size, rng=rng)
    return allocate_on_blocks(
        problem,
        method="greedy",
        device=selected,
        block=block,
        snr=selfish_snr(problem, selected, block),
        cpu=selfish_cpu_frequencies(problem),
    )


def selfish_snr(problem: AllocationProblem, device: IntArray, block: IntArray) -> FloatArray:
    """Return the SNR at each device's own best power, Eq. (56): argmin of (eta_1 p + eta_2) S / rate.

    It is Lemma 6 with one device. (56) prints log2((1 + hp) / (I + BN0)); the rate is that of Eq. (25). What
    the circuit draws costs by the second, as the delay does.
    """
    cap = snr_cap(problem, device, block)
    floor = np.broadcast_to(own_snr_floor(problem, device), device.shape).tolist()
    radio = problem.radio
    watts = watts_per_snr(problem, device, block)
    if radio.amplifier_efficiency != 1.0:
        watts = watts / radio.amplifier_efficiency
    snr = np.zeros(device.size)
    price = np.broadcast_to(problem.price_of(device), device.shape).tolist()
    circuit_w = np.broadcast_to(problem.circuit_power_of(device), device.shape).tolist()
    for k in np.flatnonzero(cap > 0):
        snr[k] = best_common_snr(
            price[k] * float(watts[k]),
            delay_weight=problem.delay_weight + price[k] * circuit_w[k],
            nat_delay_s=1.0,
            smallest=floor[k],
            largest=float(cap[k]),
        )
    return snr
