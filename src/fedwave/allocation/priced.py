"""Problem (P) with a price of a joule for each device: U - sum a_i E_i - eta_2 T, by a change of units.

Measure device i's watt in units of its price: h' = h / a, p'_max = a p_max, iota' = a iota, E'_max = a E_max,
so that p' h' = p h. SNRs, rates and delays stay as they are, joules are weighed by a: the certified solver
answers the priced problem with all its proofs, as long as sending draws no circuit power. With circuit power
the bound counts each upload's circuit at its fastest, which only lifts it, and stays a bound.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from fedwave.allocation.methods import allocate
from fedwave.allocation.problem import AllocationProblem
from fedwave.allocation.solution import Allocation, Status, build_allocation
from fedwave.errors import ProblemError
from fedwave.units import BoolArray, FloatArray, IntArray
from fedwave.wireless.rate import RadioPower

LEAST_SHARE = (
    1e-12  # of the largest price: none can be zero in the change of units; the bound makes up for it
)


@dataclass(frozen=True, kw_only=True, eq=False)
class PricedSolution:
    """A plan at given prices, what it is worth at them, and what no plan exceeds."""

    allocation: Allocation  # of the problem as given: its objective is that of energy_weight
    value: float  # U - sum a_i E_i - eta_2 T of it
    upper_bound: float  # certified: no feasible plan is worth more at these prices


def solve_priced(
    problem: AllocationProblem, prices: FloatArray, *, selected: IntArray | None = None
) -> PricedSolution:
    """Return the best plan at the prices a_i [1/J] in place of ``energy_weight``, with its certificate.

    ``selected`` are those that may upload; None: all.
    """
    prices = np.asarray(prices, dtype=np.float64)
    if prices.shape != (problem.num_devices,) or not (np.isfinite(prices) & (prices >= 0.0)).all():
        raise ProblemError(
            f"prices must be {problem.num_devices} finite numbers >= 0, one for each device, got shape "
            f"{prices.shape}. A negative price rewards wasting energy."
        )
    largest = float(prices.max(initial=0.0))
    if largest == 0.0:
        allocation = allocate(replace(problem, energy_weight=0.0), "optimal", selected=selected)
        found = _of_given_problem(problem, allocation, allocation.transmit_power_w)
        return PricedSolution(
            allocation=found, value=value_at(problem, found, prices), upper_bound=allocation.upper_bound
        )
    share = np.maximum(prices / largest, LEAST_SHARE)
    circuit_w = problem.radio.circuit_power_w
    fastest_s = _fastest_upload_s(problem) if circuit_w else np.zeros(problem.num_devices)
    relaxed = _in_other_units(problem, share, largest, circuit_share=0.0, circuit_j=circuit_w * fastest_s)
    bound = allocate(relaxed, "optimal", selected=selected)
    if circuit_w == 0.0:
        plan = bound
    else:  # plan with the circuit at the mean price: its power is one number for all
        plan = allocate(
            _in_other_units(problem, share, largest, circuit_share=float(share.mean()), circuit_j=0.0),
            "optimal",
            selected=selected,
        )
    found = _of_given_problem(problem, plan, plan.transmit_power_w / share)
    slack = _slack(problem, prices < LEAST_SHARE * largest, largest)
    value = value_at(problem, found, prices)
    return PricedSolution(allocation=found, value=value, upper_bound=max(bound.upper_bound + slack, value))


def value_at(problem: AllocationProblem, allocation: Allocation, prices: FloatArray) -> float:
    """Return U - sum a_i E_i - eta_2 T, from the allocation's own account."""
    assert allocation.account is not None
    paid = float(prices @ allocation.account.energy_j)
    delay = problem.delay_weight * allocation.delay_s if problem.delay_weight else 0.0
    return allocation.contribution - paid - delay


def _in_other_units(
    problem: AllocationProblem,
    share: FloatArray,
    largest: float,
    *,
    circuit_share: float,
    circuit_j: FloatArray | float,
) -> AllocationProblem:
    """Return the same problem with device i's watts and joules counted ``share[i]`` times.

    ``circuit_j`` is what an upload's circuit takes at least: paid from the contribution, and from the limit.
    """
    per_device = share if problem.channel_gain.ndim == 1 else share[:, np.newaxis]
    limit_j = problem.max_energy_j
    if limit_j is not None:
        limit_j = share * np.maximum(np.asarray(limit_j) - circuit_j, 0.0)
    return replace(
        problem,
        contribution=problem.contribution - largest * share * circuit_j,
        channel_gain=problem.channel_gain / per_device,
        max_power_w=share * problem.max_power_w,
        capacitance=share * problem.capacitance,
        static_power_w=share * problem.static_power_w,
        joules_per_cycle=share * problem.joules_per_cycle,
        max_energy_j=limit_j,
        energy_weight=largest,
        radio=RadioPower(
            amplifier_efficiency=problem.radio.amplifier_efficiency,
            circuit_power_w=circuit_share * problem.radio.circuit_power_w,
        ),
    )


def _of_given_problem(problem: AllocationProblem, plan: Allocation, power_w: FloatArray) -> Allocation:
    """Return the plan's decisions as an allocation of the problem with its own watts."""
    device = plan.selected
    return build_allocation(
        problem,
        method="optimal",
        device=device,
        block=plan.block_of_device[device],
        power_w=np.minimum(power_w[device], problem.max_power_w[device]),
        cpu_frequency_hz=plan.cpu_frequency_hz,
        status=plan.status if plan.status is Status.INFEASIBLE else Status.FEASIBLE,
        reason=plan.reason,
        iterations=plan.iterations,
    )


def _full_power_rate_bps(problem: AllocationProblem) -> FloatArray:
    """Return each device's rate on each block at full power, (n, M)."""
    gain = problem.channel_gain.reshape(problem.num_devices, -1)
    snr = problem.max_power_w[:, np.newaxis] * gain / problem.block_noise_w
    return np.asarray(problem.bandwidth_hz * problem.rate.spectral_efficiency(snr))


def _fastest_upload_s(problem: AllocationProblem) -> FloatArray:
    """Return how long each upload takes at least; 0 for a device that has no link."""
    rate_bps = _full_power_rate_bps(problem).max(axis=1)
    fastest_s = np.divide(problem.model_bits, rate_bps, out=np.zeros_like(rate_bps), where=rate_bps > 0.0)
    return np.asarray(fastest_s)


def _slack(problem: AllocationProblem, is_lifted: BoolArray, largest: float) -> float:
    """Return what prices that were lifted off zero can take from a plan at most, for the bound.

    Joules of an upload grow with its power, and a CPU whose joules are all but free may as well run at its
    top: full power and top frequency bound both. Twice, as the price before lifting counts for the second.
    """
    if not is_lifted.any():
        return 0.0
    rate_bps = _full_power_rate_bps(problem)
    slowest = np.where(rate_bps > 0.0, rate_bps, np.inf).min(axis=1)
    upload_j = problem.radio.drain_w(problem.max_power_w) * problem.model_bits / slowest
    top, work = problem.max_frequency_hz, problem.workload_cycles
    cycle_j = 0.5 * problem.capacitance * top**2 + problem.joules_per_cycle + problem.static_power_w / top
    return 2.0 * LEAST_SHARE * largest * float((upload_j + work * cycle_j)[is_lifted].sum())
