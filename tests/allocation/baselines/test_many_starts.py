from __future__ import annotations

import math

import numpy as np
import pytest

from fedwave.allocation import Status, allocate, violations
from fedwave.errors import ProblemError
from tests.allocation.allocation_oracles import assignments, upload_value
from tests.allocation.allocation_problems import paper_problem, random_problem, small_problem


def best_of_thresholds(problem, caps) -> float:
    """Return the best value of (SP2) over these thresholds: enumeration, then a fine grid of delays."""
    noise = problem.interference_w + 1.0
    watts = noise / problem.channel_gain[:, None]
    best = 0.0
    for cap in caps:
        able = [
            pairs
            for pairs in assignments(problem.num_devices, problem.num_blocks)
            if all(problem.max_power_w[i] / watts[i, m] >= cap * (1 - 1e-12) for i, m in pairs)
        ]

        def at(pairs, snr):
            return upload_value(problem, pairs, {i: snr * watts[i, m] for i, m in pairs})

        factor = cap / math.log1p(cap) * math.log(2)
        worth = [sum(problem.contribution[i] - factor * watts[i, m] for i, m in pairs) for pairs in able]
        if not worth or max(worth) <= 0:
            continue
        pairs = able[int(np.argmax(worth))]
        fastest = min(problem.max_power_w[i] / watts[i, m] for i, m in pairs)
        best = max(best, *(at(pairs, snr) for snr in np.geomspace(fastest * 1e-3, fastest, 4_001)))
    return best


@pytest.mark.parametrize("seed", range(15))
def test_each_threshold_is_one_matching_and_the_best_is_kept(seed):
    rng = np.random.default_rng(seed)
    problem = paper_problem(seed, num_devices=4, num_blocks=2, max_power_w=rng.uniform(0.2, 2, 4))
    caps = problem.max_power_w * problem.channel_gain / (problem.interference_w.min() + 1.0)
    found, idle = allocate(problem, "threshold", num_thresholds=50), allocate(problem, selected=[])
    assert found.objective - idle.objective == pytest.approx(best_of_thresholds(problem, caps), rel=1e-5)


@pytest.mark.parametrize("seed", range(5))
def test_more_guesses_are_no_worse_and_climbing_helps(seed):
    problem = paper_problem(seed)
    optimum = allocate(problem).objective
    every = [allocate(problem, "threshold", num_thresholds=count).objective for count in (1, 10_000)]
    climbed = allocate(problem, "ives-multistart", num_starts=10_000).objective
    assert every[0] <= every[1] <= climbed <= optimum + 1e-9
    assert climbed == pytest.approx(optimum, rel=1e-3)


def test_a_start_climbs_as_ives_does():
    problem = paper_problem(3)
    caps = problem.max_power_w * problem.channel_gain / (problem.interference_w.min() + 1.0)
    alone = [allocate(problem, "ives", start=problem.nat_delay_s / math.log1p(cap)).objective for cap in caps]
    assert allocate(problem, "ives-multistart", num_starts=10_000).objective == pytest.approx(max(alone))


@pytest.mark.parametrize("method", ["threshold", "ives-multistart"])
def test_nobody_uploads_where_it_does_not_pay(method):
    found = allocate(small_problem(delay_weight=1e3), method)
    assert (found.num_selected, found.reason) == (0, "no upload is worth its energy and delay")
    assert allocate(small_problem(contribution=[-1.0, 0.0, -2.0]), method).num_selected == 0
    assert allocate(small_problem(), method, selected=[1]).selected.tolist() == [1]


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.parametrize("method", ["threshold", "ives-multistart"])
def test_they_break_no_limit_and_beat_no_bound(method, seed):
    problem = random_problem(seed)
    found = allocate(problem, method)
    if found.status is Status.FEASIBLE:
        assert violations(problem, found) == ()
    assert found.objective <= allocate(problem).upper_bound + 1e-9


def test_counts_must_be_positive():
    with pytest.raises(ProblemError, match="num_thresholds must be >= 1, got 0"):
        allocate(small_problem(), "threshold", num_thresholds=0)
    with pytest.raises(ProblemError, match="num_starts must be >= 1, got 0"):
        allocate(small_problem(), "ives-multistart", num_starts=0)
    with pytest.raises(ProblemError, match="max_iterations must be >= 1, got 0"):
        allocate(small_problem(), "ives-multistart", max_iterations=0)
