"""What a plan is worth in another problem: made for gains that were believed, met by those that are true."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from fedwave.allocation.constraints import violations
from fedwave.allocation.problem import AllocationProblem
from fedwave.allocation.solution import Allocation, DeviceCosts, account, net_worth
from fedwave.allocation.tolerance import exceeds
from fedwave.units import FloatArray, IntArray
from fedwave.wireless.phases import longest_upload_s


@dataclass(frozen=True, kw_only=True, eq=False)
class Evaluation:
    """What became of an allocation in a problem that it need not have been made for."""

    objective: float  # U - eta_1 E - eta_2 T, of what arrives and what was spent
    contribution: float  # U of what is expected to arrive
    energy_j: float  # of all devices' computing and of what was sent, also in vain
    compute_delay_s: float
    upload_delay_s: float  # the last upload has ended, or was broken off
    lost: IntArray  # sorted: the devices that send in vain
    violations: tuple[str, ...]  # one line for each constraint or limit that the decisions break
    account: DeviceCosts  # each device's share, with its SINR and rate

    @property
    def delay_s(self) -> float:
        """Return the round's time T, Eq. (31)."""
        return self.compute_delay_s + self.upload_delay_s

    def regret(self, optimum: Allocation) -> float:
        """Return what is missing to the proven bound of this problem's optimum, ``allocate(true_problem)``.

        It is never negative by more than rounding, unless computing itself ends after the round: what such
        a plan saves, no plan that keeps (P)'s limits can.
        """
        return optimum.upper_bound - self.objective


def evaluate(plan: Allocation, true_problem: AllocationProblem) -> Evaluation:
    """Return what an allocation is worth in ``true_problem``, e.g. with the gains that uploads really meet.

    Blocks, powers and frequencies stay as decided. An upload takes as long as its true rate needs. Below the
    modem's floor there is no link: nothing is sent, and it is lost. Below ``min_snr`` it is sent in vain. At
    a hard limit (``max_delay_s``, the device's ``max_energy_j``, the round's end) it is broken off and lost,
    having cost what it took until then. Of the others each arrives with its success probability. A plan that
    keeps every limit is worth its ``total_cost`` there.
    """
    broken = violations(true_problem, plan)
    costs = account(true_problem, plan)
    true_problem = true_problem.taking(plan.offer_of_device)
    costs = _broken_off(true_problem, plan, costs)
    who = costs.is_selected
    contribution = float((true_problem.contribution[who] * costs.success_probability[who]).sum())
    return Evaluation(
        objective=net_worth(true_problem, costs, contribution),
        contribution=contribution,
        energy_j=float(costs.compute_energy_j.sum() + costs.upload_energy_j.sum()),
        compute_delay_s=float(costs.compute_delay_s.max(initial=0.0)),
        upload_delay_s=float(costs.upload_delay_s.max(initial=0.0)),
        lost=np.flatnonzero(who & (costs.success_probability == 0.0)),
        violations=broken,
        account=costs,
    )


def _broken_off(problem: AllocationProblem, plan: Allocation, costs: DeviceCosts) -> DeviceCosts:
    """Return the account with every upload ended where nothing goes on: without a link, or at a limit."""
    device = np.flatnonzero(costs.is_selected)
    power_w, time_s = plan.transmit_power_w[device], costs.upload_delay_s[device]
    limit_s = longest_upload_s(
        power_w,
        radio=problem.radio.of(device),
        max_delay_s=problem.deadline_of(device),
        max_energy_j=None if problem.max_energy_j is None else problem.energy_limit_of(device),
    )
    if problem.max_round_delay_s is not None:
        spent_s = problem.fixed_delay_s + float(costs.compute_delay_s.max(initial=0.0))
        limit_s = np.minimum(limit_s, max(problem.max_round_delay_s - spent_s, 0.0))
    is_late = exceeds(time_s, limit_s)
    is_linked = ~(costs.sinr[device] < problem.rate.min_snr)
    time_s = np.where(is_linked, np.where(is_late, limit_s, time_s), 0.0)
    energy_j = costs.upload_energy_j[device].copy()
    changed = (is_late | ~is_linked) & (power_w > 0)
    energy_j[changed] = problem.upload_energy_j(device[changed], power_w[changed], time_s[changed])
    arrives = np.where(is_late | ~is_linked, 0.0, costs.success_probability[device])
    return replace(
        costs,
        upload_delay_s=_spread(costs.upload_delay_s, device, time_s),
        upload_energy_j=_spread(costs.upload_energy_j, device, energy_j),
        success_probability=_spread(costs.success_probability, device, arrives),
    )


def _spread(values: FloatArray, device: IntArray, changed: FloatArray) -> FloatArray:
    result = values.copy()
    result[device] = changed
    return result
