"""value-rate: who brings most per second at full power uploads, all with one common delay. No search.

The M devices with the largest u times rate get the blocks on which they take the least energy together, and
the common delay that is best for them, Theorem 4. It knows the channel and the contributions, and is the
first thing that a practitioner would try: what a planner is worth is its lead over this.
"""

from __future__ import annotations

import math

import numpy as np

from fedwave.allocation.access.rules import allocation_of, serve
from fedwave.allocation.computing.cpu_frequency import solve_cpu_frequencies
from fedwave.allocation.problem import AllocationProblem
from fedwave.allocation.solution import Allocation, Status
from fedwave.allocation.uploads.assignment import Matching, linear_sum_assignment, matching_of
from fedwave.allocation.uploads.delay_cost import DelayCost
from fedwave.allocation.uploads.pairs import PairTable, pair_table
from fedwave.allocation.uploads.snr_range import snr_floor, watts_per_snr
from fedwave.allocation.uploads.upload_plan import UploadPlan, finish, value_at_best_snr
from fedwave.units import BoolArray, FloatArray, IntArray

_REFUSED = 1e3  # a pair that cannot upload costs this many times the dearest that can: it is matched last


def allocate_value_rate(problem: AllocationProblem, *, may_upload: BoolArray | None = None) -> Allocation:
    """Return the allocation of the M devices with the largest u times rate; it always serves them.

    CPU frequencies are those of (SP1), as with the optimum.
    """
    score = value_rates(problem, may_upload)
    if problem.access != "one-block":
        served = serve(problem, by_score(score)[: problem.num_blocks])
        return allocation_of(problem, served, method="value-rate")
    table = pair_table(problem, best_devices(score, problem.most_uploads)[None, :])
    matching = frugal_matching(problem, table)
    snr = value = 0.0
    if matching.row.size:
        floor, delay = snr_floor(problem), DelayCost.of(problem)
        snr, value = value_at_best_snr(table, matching, delay, snr_floor=floor)
    plan = UploadPlan(
        table=table,
        matching=matching if matching.row.size else None,
        snr=snr,
        value=value,
        upper_bound=math.inf,
        status=Status.FEASIBLE,
        num_matchings=1,
    )
    cpu = solve_cpu_frequencies(problem)
    return finish(problem, plan, cpu, method="value-rate", may_upload=may_upload)


def value_rates(problem: AllocationProblem, may_upload: BoolArray | None) -> FloatArray:
    """Return u times the rate at full power of each device; 0 for who brings nothing or may not upload."""
    score = np.where(problem.contribution > 0.0, problem.contribution * mean_rate_bps(problem), 0.0)
    return score if may_upload is None else np.where(may_upload, score, 0.0)


def by_score(score: FloatArray) -> IntArray:
    """Return the devices with scores above 0, the best first; ties go by index."""
    order = np.argsort(-score, kind="stable")
    return order[score[order] > 0.0]


def mean_rate_bps(problem: AllocationProblem) -> FloatArray:
    """Return each device's rate at full power, the mean over the blocks; 0 where the modem finds no link."""
    device, total = np.arange(problem.num_devices), np.zeros(problem.num_devices)
    for block in range(problem.num_blocks):
        total += problem.rate_bps_of(device, np.asarray(block), problem.max_power_w)
    return total / max(problem.num_blocks, 1)


def best_devices(score: FloatArray, count: int) -> IntArray:
    """Return the sorted devices with the largest scores above 0, at most ``count``; ties go by index."""
    best = np.argsort(-score, kind="stable")[:count]
    return np.sort(best[score[best] > 0.0])


def frugal_matching(problem: AllocationProblem, table: PairTable) -> Matching:
    """Return the matching of as many devices as can upload that takes the least energy at a common delay."""
    block, device = np.broadcast_arrays(table.block[:, None], table.device)
    cost, can = watts_per_snr(problem, device, block), table.snr_cap > 0.0
    dearest = cost.max(initial=0.0, where=can)
    cost = np.where(can, cost / (dearest or 1.0), _REFUSED * max(cost.shape))
    row, column = linear_sum_assignment(cost)
    served = can[row, column]
    return matching_of(table, row[served], column[served], energy_factor=0.0, smallest_cap=0.0)
