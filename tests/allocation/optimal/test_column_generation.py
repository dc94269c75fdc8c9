from __future__ import annotations

import importlib.util
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fedwave.allocation import allocate, violations
from fedwave.allocation.optimal import solve
from fedwave.allocation.optimal.candidates import candidate_pairs, useful_devices
from fedwave.allocation.optimal.column_generation import ColumnGeneration
from fedwave.allocation.optimal.search import BranchAndBound
from fedwave.allocation.solution import Status
from fedwave.allocation.uploads.faster_uploads import may_be_faster
from fedwave.testing.method import random_problem
from tests.allocation.allocation_problems import paper_problem
from tests.allocation.optimal.test_candidates import crowd

FAMILIES_FILE = Path(__file__).parents[3] / "benchmarks" / "hard_families.py"


def hard_families(num_devices: int, num_blocks: int, seed: int):
    spec = importlib.util.spec_from_file_location("hard_families", FAMILIES_FILE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    base = paper_problem(seed, num_devices=num_devices, num_blocks=num_blocks)
    return list(module.hard_families(base, seed))


def assert_equals_the_plain_search(problem, *, exact=True):
    """Check value and bound against the search over all pairs at once."""
    options = {"relative_gap": 0.0, "compute_cost": 0.0, "max_matchings": 20_000}
    plain = BranchAndBound(problem, candidate_pairs(problem)).run(**options)
    growing = ColumnGeneration(problem, useful_devices(problem, None)).run(**options)
    scale = 1e-11 * float(np.maximum(problem.contribution, 0).sum())
    assert abs(growing.value - plain.value) <= scale
    assert growing.upper_bound >= plain.value - scale
    if exact:
        assert plain.status is growing.status is Status.OPTIMAL
        assert growing.upper_bound <= growing.value + scale


@pytest.mark.parametrize("start", range(0, 400, 50))
def test_equals_the_plain_search_on_random_crowds(start):
    for seed in range(start, start + 50):
        rng = np.random.default_rng(seed)
        problem = (
            crowd(rng, max_devices=120, max_blocks=8)
            if seed % 2
            else random_problem(rng, max_devices=30, max_blocks=6)
        )
        if not may_be_faster(problem) and useful_devices(problem, None).size:
            assert_equals_the_plain_search(problem)


@pytest.mark.parametrize("start", range(0, 200, 50))
def test_equals_the_plain_search_where_each_device_has_a_price(start):
    for seed in range(start, start + 50):
        problem = crowd(np.random.default_rng(seed), max_devices=120, max_blocks=8, has_prices=True)
        if useful_devices(problem, None).size:
            assert_equals_the_plain_search(problem)


@pytest.mark.parametrize("index", range(6))
def test_equals_the_plain_search_on_hard_families_with_prices(index):
    _, problem = hard_families(1500, 12, 3)[index]
    price = 10.0 ** np.random.default_rng(index).uniform(-2, 1, problem.num_devices)
    assert_equals_the_plain_search(replace(problem, energy_weight=price))


@pytest.mark.parametrize("index", range(6))
def test_equals_the_plain_search_on_hard_families(index):
    name, problem = hard_families(1500, 12, 3)[index]
    assert_equals_the_plain_search(problem)
    assert violations(problem, allocate(problem)) == (), name


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("index", range(6))
def test_equals_the_plain_search_on_large_hard_families(index, seed):
    _, problem = hard_families(20_000, 40, seed)[index]
    assert_equals_the_plain_search(problem)


def test_takes_in_few_of_a_crowd_that_cannot_be_pruned():
    _, problem = hard_families(6000, 10, 0)[1]
    search = ColumnGeneration(problem, np.arange(6000))
    search.run(relative_gap=1e-6, compute_cost=0.0, max_matchings=5000)
    assert search._table.device.shape[1] < 600


@pytest.mark.parametrize("max_matchings", [8, 12, 20, 30])
def test_a_search_cut_short_still_has_a_bound_for_all_devices(max_matchings):
    for _, problem in hard_families(1500, 12, 5):
        best = allocate(problem)
        plan = ColumnGeneration(problem, useful_devices(problem, None)).run(
            relative_gap=0.0, compute_cost=0.0, max_matchings=max_matchings
        )
        value = BranchAndBound(problem, candidate_pairs(problem)).run(
            relative_gap=0.0, compute_cost=0.0, max_matchings=5000
        )
        assert plan.value <= value.value + 1e-9
        assert plan.upper_bound >= value.value - 1e-9
        assert best.status is Status.OPTIMAL


def test_the_search_is_chosen_by_the_size_of_the_problem():
    small, large = hard_families(300, 5, 0)[1][1], hard_families(12_000, 10, 0)[1][1]
    assert type(solve._search(small, None)) is BranchAndBound
    assert type(solve._search(large, None)) is ColumnGeneration
    few = np.zeros(12_000, dtype=bool)
    few[:40] = True
    assert type(solve._search(large, few)) is BranchAndBound
    assert set(allocate(large, selected=np.arange(40)).selected) <= set(range(40))
