from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

from fedwave.allocation import allocate, violations
from fedwave.allocation.assignment import best_matching
from fedwave.allocation.limits import snr_cap
from fedwave.allocation.optimal import solve
from fedwave.allocation.optimal.candidates import candidate_pairs, useful_devices
from fedwave.allocation.optimal.growing import GrowingSearch
from fedwave.allocation.optimal.outsiders import Offer, Outsiders
from fedwave.allocation.optimal.prices import block_prices
from fedwave.allocation.optimal.search import BranchAndBound
from fedwave.allocation.optimal.warm import warm_matching
from fedwave.allocation.own_snr import has_own_choice
from fedwave.allocation.pairs import all_pairs, pair_table
from fedwave.allocation.power import energy_factor
from fedwave.allocation.solution import Status
from tests.allocation.allocation_problems import paper_problem, random_problem
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
    growing = GrowingSearch(problem, useful_devices(problem, None)).run(**options)
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
        if not has_own_choice(problem) and useful_devices(problem, None).size:
            assert_equals_the_plain_search(problem)


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
    search = GrowingSearch(problem, np.arange(6000))
    search.run(relative_gap=1e-6, compute_cost=0.0, max_matchings=5000)
    assert search._table.device.shape[1] < 600


@pytest.mark.parametrize("max_matchings", [8, 12, 20, 30])
def test_a_search_cut_short_still_has_a_bound_for_all_devices(max_matchings):
    for _, problem in hard_families(1500, 12, 5):
        best = allocate(problem)
        plan = GrowingSearch(problem, useful_devices(problem, None)).run(
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
    assert type(solve._search(large, None)) is GrowingSearch
    few = np.zeros(12_000, dtype=bool)
    few[:40] = True
    assert type(solve._search(large, few)) is BranchAndBound
    assert set(allocate(large, selected=np.arange(40)).selected) <= set(range(40))


@pytest.mark.parametrize("seed", range(20))
def test_prices_prove_that_a_matching_is_the_best(seed):
    rng = np.random.default_rng(seed)
    problem = crowd(rng, max_devices=40, max_blocks=7)
    table = all_pairs(problem, may_upload=problem.contribution > 0)
    if table.device.size == 0:
        return
    for snr in (0.01, 0.1, 0.4):
        factor = energy_factor(snr)
        matching = best_matching(table, energy_factor=factor, smallest_cap=snr)
        prices = block_prices(table, matching)
        weight = np.where(
            table.snr_cap >= snr, table.contribution - np.nan_to_num(table.unit_cost) * factor, -1e300
        )
        profit = np.maximum((weight - prices[:, None]).max(axis=0), 0.0)
        assert (prices >= 0.0).all()
        assert_allclose(prices.sum() + profit.sum(), matching.value(factor), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("spoilt", [0.0, 0.3, 3.0])
def test_a_matching_from_any_prices_is_the_best_one(seed, spoilt):
    rng = np.random.default_rng(seed)
    _, problem = hard_families(200, 6, seed)[seed % 6]
    table = all_pairs(problem)
    factor, snr = energy_factor(0.1), 0.05
    plain = best_matching(table, energy_factor=factor, smallest_cap=snr)
    start = block_prices(table, plain) * rng.uniform(1.0 - min(spoilt, 1.0), 1.0 + spoilt, 6)
    found, prices = warm_matching(table, energy_factor=factor, smallest_cap=snr, prices=start)
    assert_allclose(found.value(factor), plain.value(factor), rtol=1e-12)
    assert_allclose(prices, block_prices(table, found), rtol=1e-12)


@pytest.mark.parametrize("index", range(6))
@pytest.mark.parametrize("snr", [0.02, 0.1, 0.3])
def test_outsiders_make_what_the_definition_says(index, snr):
    """The oracle looks at every device on every block, with exact limits."""
    _, problem = hard_families(400, 7, index)[index]
    inside, factor = np.arange(0, 400, 9), energy_factor(snr)
    table = pair_table(problem, inside[None, :])
    matching = best_matching(table, energy_factor=factor, smallest_cap=snr)
    prices = np.empty(7)
    prices[table.block] = block_prices(table, matching)
    outsiders = Outsiders(problem, useful_devices(problem, None))
    outsiders.take_inside(inside)
    (found,) = outsiders.profits([Offer(prices, factor, snr)])
    expected = {}
    unit = problem.energy_weight * problem.nat_time_s
    for device in np.setdiff1d(outsiders.device, inside):
        best = 0.0
        for block in range(7):
            gain = problem.gain_of(np.array(device), np.array(block))
            if snr_cap(problem, np.array([device]), np.array([block]))[0] >= snr:
                worth = problem.contribution[device] - unit * problem.block_noise_w[block] / gain * factor
                best = max(best, float(worth - prices[block]))
        if best > 0.0:
            expected[int(device)] = best
    got = dict(zip(found.device.tolist(), found.profit.tolist(), strict=True))
    largest = sorted(expected.values())[-7:]
    assert found.total >= sum(largest) * (1 - 1e-12)
    for device, profit in got.items():
        assert expected[device] == pytest.approx(profit, rel=1e-9)
    if len(got) <= 28:  # all were looked at
        assert set(got) == set(expected)
        assert found.total == pytest.approx(sum(largest), rel=1e-9, abs=1e-12)
