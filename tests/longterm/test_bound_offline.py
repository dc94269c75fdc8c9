"""Tiny traces: the bound is at least the offline optimum by enumeration, which is at least every planner."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest

from fedwave.longterm.bound import long_term_bound
from fedwave.longterm.trace import Replay, Trace, replay
from fedwave.server import (
    CappedRounds,
    CellPlanner,
    ConstantPrices,
    DriftPlusPenalty,
    Eafl,
    Planner,
    UntilSpent,
)
from fedwave.units import FloatArray
from tests.longterm.small_traces import small_trace
from tests.longterm.test_bound import options

# Devices, rounds, delays that each upload may take (twice as many with two frequencies), and the seed.
TINY = [(2, 6, 2, 0), (2, 5, 3, 1), (3, 5, 2, 2), (3, 4, 3, 3), (4, 4, 2, 4), (4, 4, 3, 5), (1, 6, 3, 6)]


def planners(budget_j: FloatArray, num_rounds: int) -> dict[str, Callable[[CellPlanner], Planner]]:
    least_j = float(budget_j.min())
    return {
        "drift": partial(DriftPlusPenalty, budget_j=least_j, v=0.1),
        "drift that asks all": partial(DriftPlusPenalty, budget_j=0.5 * least_j, v=0.02, asks="all"),
        "drift in frames": partial(DriftPlusPenalty, budget_j=least_j, v=0.1, frame=2, growth=1.0),
        "constant prices": partial(ConstantPrices, price=(10.0 / budget_j).tolist()),
        "dear constant prices": partial(ConstantPrices, price=1e3),
        "capped": partial(CappedRounds, budget_j=least_j),
        "capped that saves": partial(CappedRounds, budget_j=least_j, saves=True),
        "until spent": partial(UntilSpent, total_j=0.5 * least_j * num_rounds),
        "eafl": partial(Eafl, total_j=0.5 * least_j * num_rounds, utility="contribution"),
    }


def best_schedule(
    trace: Trace, budget_j: FloatArray, num_delays: int, played: list[Replay]
) -> tuple[float, int]:
    """Return the best mean utility of all schedules that keep the budgets, and how many there were.

    In every round a schedule may take any of the options, or what one of the planners did in it.
    """
    total_j = budget_j * trace.num_rounds
    utility, spent_j = np.zeros(1), np.zeros((1, trace.num_devices))
    for k in range(trace.num_rounds):
        own_utility, own_j = options(trace, k, num_delays)
        own_utility = np.concatenate([own_utility, [one.utility[k] for one in played]])
        own_j = np.vstack([own_j, *(one.energy_j[k][None] for one in played)])
        utility = (utility[:, None] + own_utility).ravel()
        spent_j = (spent_j[:, None, :] + own_j).reshape(-1, trace.num_devices)
        keeps = (spent_j <= total_j).all(axis=1)  # nothing is ever given back
        utility, spent_j = utility[keeps], spent_j[keeps]
        better = np.unique(np.column_stack([-utility, spent_j]), axis=0)  # the same by two planners
        utility, spent_j = -better[:, 0], better[:, 1:]
    return float(utility.max()) / trace.num_rounds, utility.size


@pytest.mark.parametrize(("num_devices", "num_rounds", "num_delays", "seed"), TINY)
@pytest.mark.parametrize("num_samples", [0, 1])
def test_bound_offline_optimum_and_planners_are_in_this_order(
    num_devices: int, num_rounds: int, num_delays: int, seed: int, num_samples: int
) -> None:
    trace = small_trace(num_devices, 1, num_rounds, seed=seed, num_samples=num_samples)
    rng = np.random.default_rng(seed)
    budget_j = rng.uniform(0.2, 1.2, num_devices)  # a share of each battery's charge
    played = {name: replay(trace, make) for name, make in planners(budget_j, num_rounds).items()}
    kept = {
        name: one for name, one in played.items() if (one.energy_j.mean(axis=0) <= budget_j + 1e-12).all()
    }
    few = list(kept.values())[:4]
    offline, count = best_schedule(trace, budget_j, num_delays, few)
    bound = long_term_bound(trace, budget_j, num_steps=25)
    assert count > 20
    assert bound.value >= offline - 1e-9
    assert offline > 0.0
    assert {"dear constant prices", "capped that saves"} <= set(kept) or num_samples
    for one in few:
        assert one.mean_utility <= offline + 1e-12
    for one in kept.values():
        assert one.mean_utility <= bound.value + 1e-9


def test_a_policy_that_overdraws_may_pass_the_bound_so_the_budget_matters() -> None:
    trace = small_trace(2, 1, 6, seed=0, num_samples=0)
    free = replay(trace)
    budget_j = free.energy_j.mean(axis=0) * 0.2
    assert free.mean_utility > 1.05 * long_term_bound(trace, budget_j, num_steps=25).value


def test_enumeration_by_rounds_is_enumeration_of_all_schedules() -> None:
    """Dropping what has already overdrawn loses nothing: against the plain product of all rounds' options."""
    trace, budget_j = small_trace(2, 1, 4, seed=7, num_samples=1), np.array([0.4, 0.7])
    found = [options(trace, k, 2) for k in range(4)]
    best = 0.0
    for chosen in itertools.product(*(range(len(utility)) for utility, _ in found)):
        spent = sum(found[k][1][one] for k, one in enumerate(chosen))
        if (spent <= 4 * budget_j).all():
            best = max(best, sum(found[k][0][one] for k, one in enumerate(chosen)) / 4)
    assert best_schedule(trace, budget_j, 2, [])[0] == pytest.approx(best, rel=1e-12)
