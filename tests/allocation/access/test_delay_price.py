"""What the delay costs under a round's deadline, by the definition: CPUs hurried by scipy's search."""

from __future__ import annotations

import numpy as np
import pytest

from fedwave.allocation import AllocationProblem
from fedwave.allocation.access.delay_price import DelayPrice
from tests.allocation.access.access_oracles import alike_problem, computing_cost


def hurried(seed: int) -> AllocationProblem:
    return alike_problem(np.random.default_rng(seed), "shared-band", n=3, m=2, features=("round",))


def test_whose_fastest_time_is_the_best_is_never_hurried() -> None:
    problem = hurried(6)
    price = DelayPrice.of(problem)
    assert price.hurry is not None
    assert price.hurry.slack_s == price.deadline_s
    assert price.cost(0.9 * price.deadline_s) == pytest.approx(0.9 * price.deadline_s * problem.delay_weight)


def definition(problem: AllocationProblem, delay_s: float) -> float:
    return problem.delay_weight * delay_s + computing_cost(problem, delay_s) - computing_cost(problem, 0.0)


@pytest.mark.parametrize("seed", [0, 1, 2, 3, 4, 5, 7, 8])
def test_cost_is_the_delay_s_and_what_hurried_cpus_take_more(seed: int) -> None:
    problem = hurried(seed)
    price = DelayPrice.of(problem)
    assert price.hurry is not None
    delays = price.deadline_s * np.array([0.05, 0.3, 0.6, 0.9, 0.97, 0.999])
    assert delays[-1] > price.hurry.slack_s  # or nobody would be hurried
    for delay_s in delays:
        assert price.cost(delay_s) == pytest.approx(definition(problem, delay_s), rel=1e-7)


@pytest.mark.parametrize("seed", [0, 1, 2, 3, 4, 5, 7, 8])
def test_slope_and_bend_are_those_of_the_definition(seed: int) -> None:
    problem = hurried(seed)
    price = DelayPrice.of(problem)
    assert price.hurry is not None
    slack_s, last_s = price.hurry.slack_s, price.deadline_s
    inside = [0.5 * slack_s] if slack_s > 0.0 else []
    for delay_s in [*inside, max(slack_s, 0.0) + 0.4 * (last_s - max(slack_s, 0.0))]:
        step = 1e-4 * last_s
        rise = definition(problem, delay_s + step) - definition(problem, delay_s - step)
        assert price.slope(delay_s) == pytest.approx(rise / (2 * step), rel=1e-4)
        bend = price.slope(delay_s + step) - price.slope(delay_s - step)
        assert price.bend(delay_s) == pytest.approx(bend / (2 * step), rel=1e-3, abs=1e-9)


def test_without_a_round_s_deadline_every_second_costs_the_same() -> None:
    problem = alike_problem(np.random.default_rng(0), "blocks", n=2, m=1, features=("deadline",))
    price = DelayPrice.of(problem)
    assert price.cost(0.25) == pytest.approx(0.25 * problem.delay_weight)
    assert price.slope(0.25) == problem.delay_weight
    assert price.bend(0.25) == 0.0
    assert price.latest_s(1e9) == problem.max_delay_s
    assert price.latest_s(1e-3) == pytest.approx(1e-3 / problem.delay_weight)
    assert price.latest_s(-1.0) == 0.0
