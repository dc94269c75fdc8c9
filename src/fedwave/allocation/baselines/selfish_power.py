"""The power that suits each device alone, Eq. (56): Greedy's choice, and FEDL's SUB2."""

from __future__ import annotations

import numpy as np

from fedwave.allocation.limits import snr_cap, snr_floor, watts_per_snr
from fedwave.allocation.power import best_common_snr
from fedwave.allocation.problem import AllocationProblem
from fedwave.units import FloatArray, IntArray


def selfish_snr(problem: AllocationProblem, device: IntArray, block: IntArray) -> FloatArray:
    """Return the SNR at each device's own best power, Eq. (56): argmin of (eta_1 p + eta_2) S / rate.

    It is Lemma 6 with one device. (56) prints log2((1 + hp) / (I + BN0)); the rate is that of Eq. (25). What
    the circuit draws costs by the second, as the delay does.
    """
    cap, floor = snr_cap(problem, device, block), snr_floor(problem)
    radio = problem.radio
    watts = watts_per_snr(problem, device, block)
    if radio.amplifier_efficiency != 1.0:
        watts = watts / radio.amplifier_efficiency
    snr = np.zeros(device.size)
    for k in np.flatnonzero(cap > 0):
        snr[k] = best_common_snr(
            problem.energy_weight * float(watts[k]),
            delay_weight=problem.delay_weight + problem.energy_weight * radio.circuit_power_w,
            nat_time_s=1.0,
            smallest=floor,
            largest=float(cap[k]),
        )
    return snr
