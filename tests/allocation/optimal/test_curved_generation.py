from __future__ import annotations

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

from fedwave.allocation import allocate, violations
from fedwave.allocation.optimal import solve
from fedwave.allocation.optimal.candidates import candidate_pairs, useful_devices
from fedwave.allocation.optimal.curved_generation import CurvedGeneration
from fedwave.allocation.optimal.search import BranchAndBound
from fedwave.allocation.solution import Status
from fedwave.allocation.uploads.faster_uploads import may_be_faster
from fedwave.wireless.rate import RadioPower
from tests.allocation.allocation_problems import link_problem, link_terms
from tests.allocation.link_oracle import best_by_link_brute_force
from tests.allocation.optimal.test_candidates import crowd
from tests.allocation.optimal.test_column_generation import hard_families

FEATURES = ("errors", "circuit", "rate", "outage", "energy", "delay", "round", "own_delay", "own_circuit")
EXACT = {"relative_gap": 0.0, "compute_cost": 0.0, "max_matchings": 20_000}


def some_features(rng: np.random.Generator) -> list[str]:
    """Return packet errors in most cases, and any others."""
    chosen = [name for name in FEATURES if rng.random() < 0.25]
    return ["errors", *chosen] if rng.random() < 0.8 else chosen


def assert_equals_the_plain_search(problem):
    """Check value and bound against the search over all pairs at once; return the growing search."""
    plain = BranchAndBound(problem, candidate_pairs(problem)).run(**EXACT)
    search = CurvedGeneration(problem, useful_devices(problem, None))
    growing = search.run(**EXACT)
    scale = 1e-11 * float(np.maximum(problem.contribution, 0).sum())
    assert abs(growing.value - plain.value) <= scale
    assert plain.status is growing.status is Status.OPTIMAL
    assert growing.value <= growing.upper_bound <= growing.value + scale
    return search


@pytest.mark.parametrize("start", range(0, 300, 50))
def test_equals_the_plain_search_on_random_links(start):
    """With at most three blocks the table starts from six devices or fewer of sixty."""
    num_grown = 0
    for seed in range(start, start + 50):
        rng = np.random.default_rng(seed)
        problem = link_problem(rng, some_features(rng), max_devices=60, max_blocks=3)
        if may_be_faster(problem) and useful_devices(problem, None).size:
            search = assert_equals_the_plain_search(problem)
            num_grown += search._table.device.size > search._first_table.device.size
    assert num_grown > 8


@pytest.mark.parametrize("start", range(0, 200, 50))
def test_equals_the_plain_search_on_crowds_with_ties_zeros_and_prices(start):
    for seed in range(start, start + 50):
        rng = np.random.default_rng(seed)
        problem = crowd(rng, max_devices=100, max_blocks=5, has_prices=bool(seed % 2))
        terms = link_terms(rng, ["errors", *(["circuit"] if seed % 3 == 0 else [])], problem.num_devices)
        problem = replace(problem, **terms)
        if useful_devices(problem, None).size:
            assert_equals_the_plain_search(problem)


@pytest.mark.parametrize("seed", range(40))
def test_is_the_best_of_all_assignments_by_brute_force(seed, monkeypatch):
    monkeypatch.setattr(solve, "_FEW_PAIRS", 0)
    monkeypatch.setattr(solve, "_FEW_PER_BLOCK", 0)
    rng = np.random.default_rng(500 + seed)
    features = ["errors", *(["energy"] if seed % 3 == 0 else []), *(["circuit"] if seed % 4 == 0 else [])]
    problem = link_problem(rng, features, max_devices=7, max_blocks=2)
    found = allocate(problem)
    assert found.objective == pytest.approx(best_by_link_brute_force(problem), rel=1e-7, abs=1e-7)
    assert found.upper_bound >= found.objective


@pytest.mark.parametrize("link", ["errors", "circuit", "both"])
@pytest.mark.parametrize("index", range(6))
def test_equals_the_plain_search_on_hard_families(index, link):
    name, problem = hard_families(1500, 12, 3)[index]
    problem = with_link(problem, link)
    search = assert_equals_the_plain_search(problem)
    assert search._table.device.size < 600, name
    assert violations(problem, allocate(problem)) == (), name


def with_link(problem, link):
    if link != "circuit":
        problem = replace(problem, packet_error_waterfall=0.02)
    if link != "errors":
        problem = replace(problem, radio=RadioPower(amplifier_efficiency=0.3, circuit_power_w=0.01))
    return problem


@pytest.mark.parametrize("max_matchings", [8, 12, 20, 40])
def test_a_search_cut_short_still_has_a_bound_for_all_devices(max_matchings):
    for _, problem in hard_families(1500, 12, 5):
        problem = with_link(problem, "errors")
        options = {**EXACT, "max_matchings": max_matchings}
        plan = CurvedGeneration(problem, useful_devices(problem, None)).run(**options)
        best = BranchAndBound(problem, candidate_pairs(problem)).run(**EXACT)
        assert plan.value <= best.value + 1e-9
        assert plan.upper_bound >= best.value - 1e-9


def test_a_matching_of_a_smaller_table_is_not_priced_anew():
    """Devices taken in since would count neither as inside nor as outside."""
    _, problem = hard_families(1500, 12, 3)[0]
    search = CurvedGeneration(with_link(problem, "errors"), np.arange(1500))
    lines = search._touching(0.2)
    end, other = search._match(lines, 0.2, 0.2), search._match(lines, 0.25, 0.2)
    profits = search._profits_at(end, 0.2)
    assert profits.total > 0.0
    search._take_in([profits])
    search._take_in([profits])  # as another node may ask for again
    assert np.unique(search._table.device).size == search._table.device.size
    assert search._profits_at(end, 0.2) is profits
    with pytest.raises(AssertionError):
        search._profits_at(other, 0.2)


def test_a_node_s_bound_counts_devices_that_are_not_in_its_table():
    """A handful of weak devices in the table: all that the node is worth lies outside."""
    _, problem = hard_families(1500, 12, 3)[0]
    problem = with_link(problem, "errors")
    search = CurvedGeneration(problem, np.arange(1500))
    lines = search._touching(0.2)
    ends = ends_of(search, lines)
    node = search._node(0.15, 0.25, 0.15, lines, *ends)
    every = BranchAndBound(problem, candidate_pairs(problem))
    touching = every._touching(0.2)
    best = every._node(0.15, 0.25, 0.15, touching, *ends_of(every, touching)).upper_bound
    assert search._lacks_devices(node)
    assert node.upper_bound >= best - 1e-9


def ends_of(search, lines):
    return [search._match(lines, snr, 0.15) for snr in (0.15, 0.25)]


def test_the_search_is_chosen_by_the_size_of_the_problem():
    small, large = (with_link(hard_families(n, 10, 0)[1][1], "errors") for n in (300, 12_000))
    assert type(solve._search(small, None)) is BranchAndBound
    assert type(solve._search(large, None)) is CurvedGeneration
    assert type(solve._search(replace(large, max_uploads=5), None)) is BranchAndBound


@pytest.mark.slow
@pytest.mark.parametrize("link", ["errors", "both"])
@pytest.mark.parametrize("index", range(6))
def test_a_hard_fleet_is_certified_in_little_memory(index, link):
    """All pairs of 30,000 devices and 60 blocks would take 14 MB for each number kept of them."""
    _, problem = hard_families(30_000, 60, 0)[index]
    problem = with_link(problem, link)
    limits = {"relative_gap": 1e-6, "compute_cost": 0.0, "max_matchings": 10_000}
    device = useful_devices(problem, None)
    tracemalloc.start()
    plan = CurvedGeneration(problem, device).run(**limits)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 120 * 2**20
    assert plan.upper_bound - plan.value <= 1e-6 * plan.value
    plain = BranchAndBound(problem, candidate_pairs(problem)).run(**limits)
    assert plan.value == pytest.approx(plain.value, rel=1e-6)
    assert plan.upper_bound >= plain.value * (1 - 1e-12)
