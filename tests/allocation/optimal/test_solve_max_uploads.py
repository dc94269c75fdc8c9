"""At most K uploads, one block each: certified, against every assignment of K devices or fewer."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fedwave.allocation import METHODS, AllocationProblem, Status, allocate, total_cost, violations
from fedwave.allocation.optimal import compiled_search
from fedwave.testing.method import random_problem
from tests.allocation.allocation_oracles import best_by_brute_force, cpu_cost
from tests.allocation.allocation_problems import FEATURES, link_problem, paper_problem
from tests.allocation.link_oracle import best_by_link_brute_force


def limited(problem: AllocationProblem, rng: np.random.Generator) -> AllocationProblem:
    return replace(problem, max_uploads=int(rng.integers(0, problem.num_blocks + 1)))


@pytest.fixture(params=["compiled", "python"], autouse=True)
def search(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "python":
        monkeypatch.setattr(compiled_search, "library", lambda source: None)


@pytest.mark.parametrize("seed", range(40))
def test_the_optimum_is_that_of_all_assignments_of_so_many(seed: int) -> None:
    rng = np.random.default_rng(seed)
    problem = limited(random_problem(rng, max_devices=5, max_blocks=3), rng)
    found = allocate(problem)
    assert violations(problem, found) == ()
    expected = best_by_brute_force(problem) - cpu_cost(problem, found.cpu_frequency_hz)
    scale = max(abs(expected), float(np.abs(problem.contribution).max()))
    assert found.objective == pytest.approx(expected, abs=2e-6 * scale)
    assert found.upper_bound >= expected - 2e-6 * scale


@pytest.mark.parametrize("seed", range(30))
def test_with_every_term_of_the_link(seed: int) -> None:
    rng = np.random.default_rng(seed)
    features = [name for name in FEATURES if rng.random() < 0.3]
    problem = limited(link_problem(rng, features, max_devices=4, max_blocks=3), rng)
    found = allocate(problem)
    if found.status is Status.INFEASIBLE:
        return
    assert found.objective == pytest.approx(best_by_link_brute_force(problem), rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("per_block", [False, True])
def test_more_uploads_are_worth_more_and_each_further_one_at_the_same_delay_less(per_block: bool) -> None:
    problem = paper_problem(1, num_devices=60, num_blocks=12)
    if per_block:
        gain = np.random.default_rng(1).uniform(0.1, 1, (60, 12))
        problem = replace(problem, channel_gain=gain)
    free = allocate(problem)
    worth = []
    for most in range(13):
        found = allocate(replace(problem, max_uploads=most))
        assert found.num_selected <= most
        assert found.status is Status.OPTIMAL
        assert found.objective == pytest.approx(total_cost(problem, found), rel=1e-12)
        worth.append(found.objective)
    assert worth[0] < worth[1] < worth[4] < worth[8]
    assert (np.diff(worth) >= -1e-12).all()
    assert worth[-1] == free.objective  # M uploads: no limit, to the bit


@pytest.mark.parametrize("method", sorted(METHODS))
@pytest.mark.parametrize("seed", range(3))
def test_no_method_uploads_more(method: str, seed: int) -> None:
    problem = replace(paper_problem(seed, num_devices=25, num_blocks=6), max_uploads=2)
    found = allocate(problem, method, rng=np.random.default_rng(seed))
    assert found.num_selected <= 2
    assert not any("max_uploads" in line for line in violations(problem, found))
    assert found.objective <= allocate(problem).objective + 1e-9
    free = allocate(replace(problem, max_uploads=None), method, rng=np.random.default_rng(seed))
    assert free.num_selected > 2 or method == "ives"
    if free.num_selected > 2:
        assert any("5 devices" in line or "max_uploads" in line for line in violations(problem, free))


def test_large_fleets_are_searched_with_all_pairs() -> None:
    problem = paper_problem(0, num_devices=20_000, num_blocks=10)
    few = allocate(replace(problem, max_uploads=4))
    assert few.num_selected == 4
    assert few.gap <= 1e-6
    by_hand = allocate(problem, selected=few.selected)  # no limit is needed where only those four may
    assert by_hand.objective == pytest.approx(few.objective, rel=1e-9)
