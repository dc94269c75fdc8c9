"""A bound on the utility of every policy that keeps to its budgets on a trace, clairvoyant or not.

Weak duality: a policy with sum_t E_i(t) <= R budget_i has, for any prices lambda >= 0,

    sum_t utility(t) <= sum_t [utility(t) - sum_i lambda_i E_i(t)] + R sum_i lambda_i budget_i
                     <= sum_t upper_bound_t(lambda) + R sum_i lambda_i budget_i = g(lambda),

where upper_bound_t is the certified bound of a round with a joule of device i priced at eta_1 + lambda_i. The
least g is the best such bound; any lambda gives a true one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from fedwave.allocation import AllocationProblem
from fedwave.allocation.priced import solve_priced
from fedwave.longterm.trace import Trace
from fedwave.server.round_problem import round_problem
from fedwave.units import FloatArray

TOLERANCE = 2e-9  # a plan may use the solver's tolerance of a limit, one billionth; so the bound allows two


@dataclass(frozen=True, kw_only=True, eq=False)
class LongTermBound:
    """The least g that was found, and the prices that give it."""

    value: float  # a round's: g / R
    prices: FloatArray  # lambda, (n,) [1/J]
    values: FloatArray  # of all prices that were tried, in order
    energy_j: FloatArray  # (n,): what the priced plans take a round, on average; the budget where it binds


@dataclass(frozen=True, kw_only=True, eq=False)
class _Round:
    """A round relaxed so that no policy can do better: only those that upload listen and compute at all."""

    problem: AllocationProblem
    least_j: FloatArray  # what a device spends at least before it sends


def long_term_bound(
    trace: Trace,
    budget_j: FloatArray | float,
    *,
    num_steps: int = 60,
    progress: Callable[[int], None] = lambda step: None,
) -> LongTermBound:
    """Return a bound on a round's mean utility of every policy that asks and serves whom it likes.

    ``budget_j`` is each device's joules a round, on average. Prices go down the subgradient
    R budget - sum_t E(t), each device's step scaled by those that it took before.
    """
    budget = np.broadcast_to(np.asarray(budget_j, dtype=np.float64), (trace.num_devices,))
    rounds = relaxed_rounds(trace)
    prices = np.zeros(trace.num_devices)
    scale = _typical_price(trace, budget)
    squares = np.zeros(trace.num_devices)
    values, best = [], (np.inf, prices, np.zeros(trace.num_devices))
    for step in range(num_steps):
        total, energy_j = dual_value(trace, rounds, prices, budget)
        values.append(total)
        if total < best[0]:
            best = (total, prices, energy_j)
        slope = budget - energy_j
        squares += slope**2
        move = np.divide(slope, np.sqrt(squares), out=np.zeros_like(slope), where=squares > 0)
        prices = np.maximum(prices - scale / np.sqrt(1.0 + step / 4.0) * move, 0.0)
        progress(step)
    return LongTermBound(value=best[0], prices=best[1], values=np.array(values), energy_j=best[2])


def dual_value(
    trace: Trace, rounds: list[_Round], prices: FloatArray, budget_j: FloatArray
) -> tuple[float, FloatArray]:
    """Return g(lambda) / R, and the mean joules of a round that each device spends at these prices."""
    eta = trace.planner.aims.energy_weight
    total, energy_j = 0.0, np.zeros(trace.num_devices)
    for one in rounds:
        all_prices = eta + prices
        worth = one.problem.contribution - all_prices * one.least_j
        solved = solve_priced(replace(one.problem, contribution=worth), all_prices)
        total += solved.upper_bound
        account = solved.allocation.account
        assert account is not None
        energy_j += account.upload_energy_j + np.where(account.is_selected, one.least_j, 0.0)
    mean = total / trace.num_rounds + float(prices @ budget_j)
    return mean, energy_j / trace.num_rounds


def relaxed_rounds(trace: Trace) -> list[_Round]:
    """Return every round of a trace, relaxed for the bound."""
    return [_relaxed_round(trace, k) for k in range(trace.num_rounds)]


def _relaxed_round(trace: Trace, round_index: int) -> _Round:
    """Return a round in which listening takes what it would alone, and computing what it takes at its least.

    Neither counts in the delay, and nobody that does not upload spends anything: each is at most what any
    policy pays. Limits that policies keep stay, but for the planner's own margins.
    """
    planner, world = trace.planner, trace.world
    channel = world.terms.on_all_blocks(world.channel(round_index))
    terms, risks = world.terms, world.terms.risks
    nobody = np.zeros(trace.num_devices, dtype=bool)
    limit_s = {} if risks.deadline_s is None else {"max_round_delay_s": risks.deadline_s * (1.0 + TOLERANCE)}
    aims = planner.aims
    if aims.max_energy_j is not None:
        aims = replace(aims, max_energy_j=np.asarray(aims.max_energy_j) * (1.0 + TOLERANCE))
    if aims.max_delay_s is not None:
        aims = replace(aims, max_delay_s=aims.max_delay_s * (1.0 + TOLERANCE))
    problem = round_problem(
        contribution=trace.contribution[round_index],
        channel=channel,
        fleet=world.fleet,
        terms=terms,
        aims=aims,
        work=planner.work,
        computes=nobody,
        needs_reports=False,
        min_snr=0.0 if risks.outage_snr is None else risks.outage_snr * (1.0 - TOLERANCE),
        fixed_delay_s=0.0,
        **limit_s,
    )
    return _Round(problem=problem, least_j=_listening_j(trace, round_index) + _computing_j(trace))


def _listening_j(trace: Trace, round_index: int) -> FloatArray:
    """Return what each device's radio takes for the model if it is sent for this device alone."""
    downlink = trace.world.terms.downlink
    if downlink is None:
        return np.zeros(trace.num_devices)
    gain = trace.world.channel(round_index).channel_gain
    rate_bps = downlink.rate_bps(gain if gain.ndim == 1 else gain.mean(axis=1))
    time_s = np.divide(
        trace.planner.work.model_bits, rate_bps, out=np.zeros_like(rate_bps), where=rate_bps > 0
    )
    return np.asarray(downlink.receive_power_w * time_s)


def _computing_j(trace: Trace) -> FloatArray:
    """Return the least joules of each update over all frequencies: at (P_0 / iota)^(1/3), within limits."""
    fleet, work = trace.world.fleet, trace.planner.work
    cycles = work.num_local_steps * fleet.cycles_per_sample * work.num_samples
    iota, static_w = fleet.capacitance, fleet.static_power_w
    free = np.divide(static_w, iota, out=np.full_like(static_w, np.inf), where=iota > 0)
    free = np.where((iota == 0) & (static_w == 0), 0.0, free)
    best_hz = np.clip(np.cbrt(free), fleet.min_frequency_hz, fleet.max_frequency_hz)
    busy = np.divide(static_w, best_hz, out=np.zeros_like(static_w), where=best_hz > 0)
    return np.asarray(cycles * (0.5 * iota * best_hz**2 + busy + fleet.joules_per_cycle))


def _typical_price(trace: Trace, budget_j: FloatArray) -> FloatArray:
    """Return what a joule may be worth: a good contribution over the budget of a round, to begin with."""
    good = np.quantile(np.maximum(trace.contribution, 0.0), 0.75, axis=0)
    price = np.maximum(good, good.mean() + np.finfo(np.float64).tiny) / budget_j / 4.0
    return np.asarray(price)
