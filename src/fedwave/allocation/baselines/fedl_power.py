"""fedl-power: the CPU frequencies and transmit powers of FEDL (Dinh et al.), on blocks instead of TDMA slots.

FEDL has all devices take part and share the uplink by TDMA, so the round pays for the *sum* of the upload
times. Its problem SUB1 (CPU) is (SP1) with kappa = eta_2 / eta_1 and no lower frequency limit. Its SUB2
(radio) falls apart into one Lambert-W formula per device, Eq. (56). Here the given devices take part, at most
as many as there are blocks, matched so that FEDL's own sum of costs is smallest. On parallel blocks each then
prices the one common delay by itself, M times too dear: this is a selfish power rule, not FEDL's optimum.
With the access "tdma" it is: the devices take turns, and by default all take part.
"""

from __future__ import annotations

import numpy as np

from fedwave.allocation.access.rules import allocation_of, serve
from fedwave.allocation.baselines.greedy import selfish_snr
from fedwave.allocation.baselines.on_blocks import allocate_on_blocks
from fedwave.allocation.computing.cpu_frequency import solve_cpu_frequencies
from fedwave.allocation.problem import AllocationProblem
from fedwave.allocation.solution import Allocation
from fedwave.allocation.uploads.assignment import linear_sum_assignment
from fedwave.allocation.uploads.snr_range import watts_per_snr
from fedwave.units import FloatArray, IntArray
from fedwave.wireless.rate import RadioPower

_REFUSED = 1e3  # an infeasible pair costs this many times the dearest feasible one, so it is matched last


def allocate_fedl_power(problem: AllocationProblem, *, selected: IntArray) -> Allocation:
    """Return FEDL's trade-off: CPU by SUB1 (our SP1), each device's power by SUB2 (our Eq. (56)).

    Devices that cannot meet a hard limit on their block do not upload, and the status is INFEASIBLE. Over
    slots this is FEDL as its paper has it, each device with the whole band in turn; its least power is not.
    """
    if problem.access == "tdma":
        return allocation_of(problem, serve(problem, selected), method="fedl-power")
    shape = (selected.size, problem.num_blocks)
    every_device = np.broadcast_to(selected[:, None], shape).ravel()
    every_block = np.broadcast_to(np.arange(problem.num_blocks)[None, :], shape).ravel()
    snr = selfish_snr(problem, every_device, every_block).reshape(shape)
    watts = watts_per_snr(problem, every_device, every_block).reshape(shape)
    row, block = linear_sum_assignment(_costs(problem, selected, snr, watts))
    return allocate_on_blocks(
        problem,
        method="fedl-power",
        device=selected[row],
        block=np.asarray(block, dtype=np.int64),
        snr=snr[row, block],
        cpu=solve_cpu_frequencies(problem),
        iterations=1,
    )


def _costs(problem: AllocationProblem, selected: IntArray, snr: FloatArray, watts: FloatArray) -> FloatArray:
    """Return (eta_1 p + eta_2) times the upload delay of every pair, FEDL's SUB2."""
    can = snr > 0
    cost = np.zeros(snr.shape)
    delay = problem.nat_delay_s / np.log1p(snr[can])
    price = np.broadcast_to(np.reshape(problem.price_of(selected), (-1, 1)), snr.shape)[can]
    energy_price = price * snr[can] * watts[can]
    if problem.radio != RadioPower():
        who = np.broadcast_to(selected[:, None], snr.shape)[can]
        energy_price = price * problem.radio.of(who).drain_w(snr[can] * watts[can])
    cost[can] = (energy_price + problem.delay_weight) * delay
    cost[~can] = _REFUSED * (1.0 + cost.max(initial=0.0))
    return cost
