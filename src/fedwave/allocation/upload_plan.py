"""A solution of (SP2) in terms of the pair table, and the step from it to an allocation of (P)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedwave.allocation.assignment import Matching
from fedwave.allocation.cpu_frequency import CpuPlan
from fedwave.allocation.limits import meet_limits, watts_per_snr
from fedwave.allocation.pairs import PairTable
from fedwave.allocation.power import best_common_snr, delay_factor, energy_factor
from fedwave.allocation.problem import AllocationProblem
from fedwave.allocation.shortfall import nearest_miss, why_no_upload
from fedwave.allocation.solution import Allocation, Status, build_allocation
from fedwave.units import BoolArray


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
    matching: Matching, *, delay_weight: float, nat_time_s: float, snr_floor: float
) -> tuple[float, float]:
    """Return the best common SNR of a matching, Theorem 4, and the value g2 of (SP2) there."""
    snr = best_common_snr(
        matching.unit_cost,
        delay_weight=delay_weight,
        nat_time_s=nat_time_s,
        smallest=snr_floor,
        largest=matching.snr_cap,
    )
    value = matching.value(energy_factor(snr))
    if delay_weight:
        value -= delay_weight * nat_time_s * delay_factor(snr)
    return snr, value


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
    power = plan.snr * watts_per_snr(problem, device, block)
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
        power_w=meet_limits(problem, device, block, power),
        cpu_frequency_hz=cpu.cpu_frequency_hz,
        status=status,
        reason=reason,
        iterations=plan.num_matchings,
        upload_upper_bound=plan.upper_bound,
        trace=np.asarray(plan.trace, dtype=np.float64),
    )


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
