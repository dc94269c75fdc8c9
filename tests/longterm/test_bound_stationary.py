"""A stationary cell: budgets kept on average, utility within B / V of the bound, queues of the order of V."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest

from fedwave.allocation.priced import solve_priced
from fedwave.longterm.bound import dual_value, relaxed_rounds
from fedwave.longterm.trace import Replay, Trace, replay
from fedwave.server import DriftPlusPenalty
from fedwave.units import FloatArray
from tests.longterm.small_traces import small_trace

NUM_DEVICES, NUM_ROUNDS, BUDGET_J = 4, 240, 0.4
VS = (0.1, 0.5, 2.5)


@dataclass(frozen=True)
class Played:
    """A run of drift plus penalty on the trace, with the queues written out by hand."""

    found: Replay
    queue_j: FloatArray  # (R + 1, n), before each round and after the last

    @classmethod
    def at(cls, trace: Trace, v: float) -> Played:
        found = replay(trace, partial(DriftPlusPenalty, budget_j=BUDGET_J, v=v, asks="all"))
        queue = [np.zeros(NUM_DEVICES)]
        for spent_j in found.energy_j:
            queue.append(np.maximum(queue[-1] + spent_j - BUDGET_J, 0.0))
        return cls(found, np.array(queue))

    def overdraw_j(self, num_rounds: int) -> float:
        """Return what the worst device took a round beyond its budget, up to a round."""
        return float(self.found.energy_j[:num_rounds].mean(axis=0).max()) - BUDGET_J


@pytest.fixture(scope="module")
def trace() -> Trace:
    return small_trace(NUM_DEVICES, 2, NUM_ROUNDS, seed=3, num_samples=0)  # nothing is relaxed in the bound


@pytest.fixture(scope="module")
def played(trace: Trace) -> dict[float, Played]:
    return {v: Played.at(trace, v) for v in VS}


@pytest.fixture(scope="module")
def bound(trace: Trace, played: dict[float, Played]) -> float:
    """A bound on every policy: any prices give one, and those that the queues settle at are good ones."""
    prices = played[VS[1]].queue_j[NUM_ROUNDS // 4 :].mean(axis=0) / VS[1]
    return dual_value(trace, relaxed_rounds(trace), prices, np.full(NUM_DEVICES, BUDGET_J))[0]


def test_the_budget_is_scarce(trace: Trace, bound: float) -> None:
    free = replay(trace)
    assert (free.energy_j.mean(axis=0) > 2.0 * BUDGET_J).all()
    assert bound < 0.85 * free.mean_utility


@pytest.mark.parametrize("v", VS)
def test_the_average_budget_is_kept_as_rounds_go_by(played: dict[float, Played], v: float) -> None:
    """Sum of E <= R budget + Q(R), and Q(R) / R falls as 1 / R."""
    one = played[v]
    for num_rounds in (NUM_ROUNDS // 8, NUM_ROUNDS // 2, NUM_ROUNDS):
        assert one.overdraw_j(num_rounds) <= one.queue_j[num_rounds].max() / num_rounds + 1e-12
    early, late = one.overdraw_j(NUM_ROUNDS // 8), one.overdraw_j(NUM_ROUNDS)
    assert late < 0.35 * early  # an eighth of the rounds
    assert late < 0.4 * BUDGET_J


@pytest.mark.parametrize("v", VS)
def test_no_queue_passes_v_times_what_a_joule_can_be_worth(
    trace: Trace, played: dict[float, Played], v: float
) -> None:
    """At a price above u over the least energy of an upload nobody sends: so Q <= V p_max + E_max."""
    one, terms = played[v], trace.world.terms
    least_j = np.empty((NUM_ROUNDS, NUM_DEVICES))
    for k in range(NUM_ROUNDS):
        channel = trace.world.channel(k)
        noise_w = float(np.min(channel.interference_w)) + terms.noise_w
        least_j[k] = np.log(2.0) / terms.bandwidth_hz * noise_w / channel.channel_gain  # S = 1, e(0) = 1
    worth = (trace.contribution / least_j).max(axis=0)
    assert (one.queue_j.max(axis=0) <= v * worth + one.found.energy_j.max(axis=0)).all()


def test_queues_and_overdraft_grow_with_v_and_queues_no_faster_than_it(played: dict[float, Played]) -> None:
    mean_j = [played[v].queue_j.mean() for v in VS]
    assert mean_j[0] < mean_j[1] < mean_j[2]
    assert mean_j[1] / mean_j[0] < VS[1] / VS[0]
    assert mean_j[2] / mean_j[1] < VS[2] / VS[1]
    overdraws = [played[v].overdraw_j(NUM_ROUNDS) for v in VS]
    assert overdraws[0] < overdraws[1] < overdraws[2]


def test_utility_is_within_b_over_v_of_the_bound(played: dict[float, Played], bound: float) -> None:
    """B is half the mean square of what the queues move by; the gap falls as 1 / V."""
    gaps = []
    for v in VS:
        found = played[v].found
        b = 0.5 * float(((found.energy_j - BUDGET_J) ** 2).sum(axis=1).mean())
        gap = bound - found.mean_utility
        assert gap <= b / v
        gaps.append(gap)
    assert gaps[0] > gaps[1] > gaps[2]
    assert gaps[1] < 0.4 * gaps[0]  # V is five times as large
    assert gaps[0] > 0.1 * bound  # a small V does cost


@pytest.mark.parametrize("v", VS[:2])
def test_each_round_is_the_best_at_its_prices_so_that_the_theorems_inequality_holds(
    trace: Trace, played: dict[float, Played], v: float
) -> None:
    """Sum of U >= sum of g_t(Q_t / V) - R B / V + L(R) / V, whatever the trace: drift plus penalty itself."""
    one, rounds = played[v], relaxed_rounds(trace)
    some = np.arange(0, NUM_ROUNDS, 6)
    slack = []
    for k in some:
        prices = one.queue_j[k] / v
        best = solve_priced(rounds[k].problem, prices).upper_bound
        reached = float(one.found.utility[k] - prices @ one.found.energy_j[k])
        assert reached <= best + 1e-6 * (1.0 + abs(best))
        slack.append(best - reached)
    assert max(slack) <= 1e-5 * trace.contribution.max()
