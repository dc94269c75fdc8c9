"""A solution of (SP2) in terms of the pair table, and the step from it to an allocation of (P)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedwave.allocation.computing.cpu_frequency import CpuPlan, compute_cost, solve_cpu_frequencies
from fedwave.allocation.problem import AllocationProblem
from fedwave.allocation.solution import Allocation, Status, build_allocation
from fedwave.allocation.uploads.assignment import Matching
from fedwave.allocation.uploads.delay_cost import DelayCost
from fedwave.allocation.uploads.infeasibility import nearest_miss, why_no_upload
from fedwave.allocation.uploads.pairs import PairTable
from fedwave.allocation.uploads.power import energy_factor
from fedwave.allocation.uploads.snr_range import delay_s, meet_limits, watts_per_snr
from fedwave.units import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, kw_only=True, eq=False)
class UploadPlan:
    """A solution of (SP2): a matching of candidate pairs and the SNR they share."""

    table: PairTable
    matching: Matching | None  # None: nobody uploads
    snr: float
    value: float
    upper_bound: float
    status: Status
    num_matchings: int
    trace: tuple[float, ...] = ()
    reason: str = ""


def value_at_best_snr(
    table: PairTable, matching: Matching, delay: DelayCost, *, snr_floor: float
) -> tuple[float, float]:
    """Return the best common SNR of a matching, Theorem 4, and the value g2 of (SP2) there.

    ``table`` is the one of the problem itself, not a tangent of it.
    """
    if table.faster is None:
        snr = delay.best_snr(matching.unit_cost, smallest=snr_floor, largest=matching.snr_cap)
        return snr, matching.value(energy_factor(snr)) - delay.at(snr)
    shared = table.common_snr(matching.row, matching.column)
    snr = shared.best_snr(delay, smallest=snr_floor, largest=matching.snr_cap)
    return snr, shared.value(snr) - delay.at(snr)


def finish(
    problem: AllocationProblem,
    plan: UploadPlan,
    cpu: CpuPlan,
    *,
    method: str,
    may_upload: BoolArray | None = None,
) -> Allocation:
    """Return the allocation of an upload plan and CPU frequencies: URAL, Alg. 3."""
    row = column = np.zeros(0, dtype=np.int64)
    if plan.matching is not None:
        row, column = plan.matching.row, plan.matching.column
    device, block = plan.table.devices_at(row, column), plan.table.block[row]
    snr = plan.table.snr_at(row, column, plan.snr)
    power = meet_limits(problem, device, block, snr * watts_per_snr(problem, device, block))
    free_cost = None
    if problem.max_round_delay_s is not None:
        free_cost = compute_cost(problem, cpu.cpu_frequency_hz)
    cpu = hurried(problem, cpu, device, block, power)
    status, reason = plan.status, cpu.reason
    if reason:
        status = Status.INFEASIBLE
    elif plan.reason:
        reason = plan.reason
    elif device.size == 0:
        status, reason = _explain_nobody(problem, status, may_upload)
    return build_allocation(
        problem,
        method=method,
        device=device,
        block=block,
        power_w=power,
        cpu_frequency_hz=cpu.cpu_frequency_hz,
        status=status,
        reason=reason,
        iterations=plan.num_matchings,
        upload_upper_bound=plan.upper_bound,
        free_compute_cost=free_cost,
        trace=np.asarray(plan.trace, dtype=np.float64),
    )


def hurried(
    problem: AllocationProblem, cpu: CpuPlan, device: IntArray, block: IntArray, power_w: FloatArray
) -> CpuPlan:
    """Return the CPU frequencies that leave these uploads the time they need by the round's deadline."""
    if problem.max_round_delay_s is None or cpu.reason or device.size == 0:
        return cpu
    upload_s = float(delay_s(problem, device, block, power_w).max())
    left_s = problem.max_round_delay_s - problem.fixed_delay_s - upload_s
    return solve_cpu_frequencies(problem, finish_by_s=left_s)


def _explain_nobody(
    problem: AllocationProblem, status: Status, may_upload: BoolArray | None
) -> tuple[Status, str]:
    """Return status and reason when nobody uploads: infeasible if hard limits alone rule everybody out."""
    if problem.num_devices == 0:
        return status, "there are no devices"
    if problem.num_blocks == 0:
        return status, "there are no blocks"
    useful = problem.contribution > 0
    if may_upload is not None:
        useful &= may_upload
    device = np.flatnonzero(useful)
    if device.size == 0:
        return status, "no device that may upload has a contribution > 0"
    closest, share = nearest_miss(problem, device)
    if share == 0.0:
        return status, "no upload is worth its energy and delay"
    reason = why_no_upload(problem, closest, np.arange(problem.num_blocks))
    others = "" if device.size == 1 else ", and no other device can"
    return Status.INFEASIBLE, reason + others
