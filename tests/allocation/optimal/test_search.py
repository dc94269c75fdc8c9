from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from numpy.testing import assert_allclose

from fedwave.allocation import METHODS, Status, account, allocate, total_cost, violations
from fedwave.allocation.computing.cpu_frequency import compute_cost
from fedwave.allocation.uploads.assignment import best_matching
from fedwave.allocation.uploads.delay_cost import DelayCost
from fedwave.allocation.uploads.pairs import all_pairs
from fedwave.allocation.uploads.power import energy_factor
from fedwave.allocation.uploads.upload_plan import value_at_best_snr
from fedwave.errors import ProblemError
from fedwave.testing.method import random_problem
from tests.allocation.allocation_oracles import best_by_brute_force, best_by_scip
from tests.allocation.allocation_problems import paper_problem, problems, small_problem

PROVEN = (Status.OPTIMAL, Status.GAP_REACHED, Status.INFEASIBLE)


def upload_value(problem, found):
    return found.objective + compute_cost(problem, found.cpu_frequency_hz)


def assert_beats_everybody(problem, rng):
    """Check that limits hold, the objective is as defined, and no method beats it by more than rounding."""
    best = allocate(problem)
    assert best.status in PROVEN
    assert violations(problem, best) == ()
    scale = abs(best.objective) + best.contribution
    assert abs(total_cost(problem, best) - best.objective) <= 1e-12 * scale
    assert best.gap <= 1e-6 or best.upper_bound - best.objective <= 1e-12 * scale
    for method in METHODS:
        for options in ({}, {"keep_negative": True}) if method == "ives" else ({},):
            other = allocate(problem, method, rng=rng, **options)
            assert violations(problem, other) == (), method
            assert other.objective <= best.objective + 1e-11 * scale, method
            assert other.objective <= best.upper_bound + 1e-11 * scale, method


@pytest.mark.parametrize(
    "start",
    [pytest.param(start, marks=pytest.mark.slow if start >= 1000 else ()) for start in range(0, 2500, 250)],
)
def test_never_below_any_other_method_on_random_instances(start):
    for seed in range(start, start + 250):
        rng = np.random.default_rng(seed)
        assert_beats_everybody(random_problem(rng), rng)


@pytest.mark.slow
@pytest.mark.parametrize("start", range(2500, 22_500, 1000))
def test_never_below_any_other_method_on_many_random_instances(start):
    for seed in range(start, start + 1000):
        rng = np.random.default_rng(seed)
        assert_beats_everybody(random_problem(rng, max_devices=16, max_blocks=8), rng)


@settings(max_examples=150, deadline=None)
@given(problems())
def test_equals_brute_force_over_assignments_and_power(problem):
    found = allocate(problem)
    assert violations(problem, found) == ()
    exact = best_by_brute_force(problem)
    scale = float(np.maximum(problem.contribution, 0).sum())
    energy = float(account(problem, found).upload_energy_j.sum())
    value = found.contribution - problem.energy_weight * energy
    value -= problem.delay_weight * found.upload_delay_s
    assert value >= exact - 1e-6 * scale
    assert value <= exact + 1e-4 * scale  # the search over delays is fine, not exact


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("limits", [{}, {"max_delay_s": 3.0}, {"max_energy_j": 1.2}])
def test_equals_brute_force_at_the_papers_parameters(seed, limits):
    problem = paper_problem(seed, num_devices=5, num_blocks=2 + seed % 3, energy_weight=0.5, **limits)
    assert_allclose(
        upload_value(problem, allocate(problem)), best_by_brute_force(problem), rtol=1e-7, atol=1e-9
    )


@pytest.mark.parametrize("seed", range(4))
def test_equals_brute_force_with_gains_per_block(seed):
    gain = np.random.default_rng(seed).uniform(0.05, 2, (4, 4))
    problem = paper_problem(seed, num_devices=4, num_blocks=4, channel_gain=gain, energy_weight=0.5)
    assert_allclose(
        upload_value(problem, allocate(problem)), best_by_brute_force(problem), rtol=1e-7, atol=1e-9
    )


@pytest.mark.parametrize("seed", range(6))
def test_equals_a_general_minlp_solver(seed):
    pytest.importorskip("pyscipopt", reason="SCIP is a test-only dependency")
    limits = [{}, {"max_delay_s": 6.0}, {"max_energy_j": 2.0}][seed % 3]
    problem = paper_problem(
        seed, num_devices=3 + seed % 2, num_blocks=2 + seed % 2, energy_weight=0.5, **limits
    )
    # SCIP meets nonlinear constraints to 1e-6 only.
    assert_allclose(upload_value(problem, allocate(problem)), best_by_scip(problem), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("exponential", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_bound_is_proven_by_a_dense_sweep_over_delays(seed, exponential):
    problem = paper_problem(seed, num_devices=40, num_blocks=8, exponential=exponential)
    found = allocate(problem)
    table = all_pairs(problem)
    best = 0.0
    for snr in np.unique(table.snr_cap):
        matching = best_matching(table, energy_factor=energy_factor(snr), smallest_cap=snr)
        if matching.row.size:
            value = value_at_best_snr(table, matching, DelayCost.of(problem), snr_floor=0.0)[1]
            best = max(best, value)
    assert found.status is Status.OPTIMAL
    assert_allclose(upload_value(problem, found), best, rtol=1e-12)


def test_a_looser_gap_is_reached_and_reported():
    problem = paper_problem(8)
    exact, loose = allocate(problem), allocate(problem, relative_gap=0.2)
    assert loose.iterations < exact.iterations
    assert exact.gap <= 1e-6
    assert exact.objective <= loose.upper_bound
    assert loose.objective >= exact.objective - 0.2 * abs(loose.objective)


def test_limit_of_matchings_is_reported_with_a_valid_bound():
    problem = paper_problem(8)
    exact, stopped = allocate(problem), allocate(problem, max_matchings=5)
    assert stopped.status is Status.LIMIT
    assert stopped.objective <= exact.objective <= stopped.upper_bound
    assert stopped.gap > 1e-6


def test_trace_of_incumbents_rises_to_the_objective():
    found = allocate(paper_problem(1))
    assert (np.diff(found.trace) > 0).all()
    assert found.trace[-1] == pytest.approx(found.objective)


def test_bad_gap_is_refused():
    with pytest.raises(ProblemError, match=r"relative_gap must be >= 0 and < 1, got -1"):
        allocate(small_problem(), relative_gap=-1)


@pytest.mark.parametrize("num_devices", [1, 3])
def test_fewer_devices_than_blocks(num_devices):
    problem = paper_problem(
        2, num_devices=num_devices, num_blocks=7, contribution=50.0 * np.ones(num_devices)
    )
    found = allocate(problem)
    assert found.num_selected == num_devices
    assert upload_value(problem, found) == pytest.approx(best_by_brute_force(problem))


def test_without_any_weight_the_largest_contributions_win():
    found = allocate(small_problem(energy_weight=0, delay_weight=0))
    assert found.status is Status.OPTIMAL
    assert found.selected.tolist() == [0, 2]
    assert found.objective == 9.0


def test_without_energy_weight_the_weakest_selected_device_sends_at_full_power():
    problem = small_problem(energy_weight=0.0)
    found = allocate(problem)
    assert np.isclose(found.transmit_power_w, problem.max_power_w)[found.selected].any()
    assert upload_value(problem, found) == pytest.approx(best_by_brute_force(problem))


def test_without_delay_weight_the_upload_takes_the_whole_deadline():
    problem = small_problem(delay_weight=0.0, max_delay_s=5.0)
    found = allocate(problem)
    assert found.upload_delay_s == pytest.approx(5.0)
    assert found.upload_delay_s <= 5.0
    assert upload_value(problem, found) == pytest.approx(best_by_brute_force(problem))


def test_equal_devices_share_the_blocks():
    problem = paper_problem(
        0, num_devices=2000, contribution=np.full(2000, 9.0), channel_gain=0.5, max_power_w=0.5
    )
    assert allocate(problem).num_selected == 20


def test_devices_without_power_or_gain_never_upload():
    found = allocate(small_problem(max_power_w=[0.0, 2.0, 3.0], channel_gain=[1.0, 0.0, 0.25]))
    assert found.selected.tolist() == [2]


def test_selected_restricts_who_may_upload():
    problem = paper_problem(0)
    found = allocate(problem, selected=[3, 7, 50])
    assert set(found.selected) <= {3, 7, 50}
    assert allocate(problem).objective >= found.objective


@pytest.mark.parametrize("num_devices", [20_000])
def test_large_problems_equal_the_unpruned_answer(num_devices):
    problem = paper_problem(7, num_devices=num_devices, num_blocks=10)
    found = allocate(problem)
    # IVES from the optimum's delay looks at all pairs and cannot climb any higher.
    again = allocate(problem, "ives", start=found.upload_delay_s)
    assert found.status is Status.OPTIMAL
    assert_allclose(again.objective, found.objective, rtol=1e-12)


def test_long_delays_are_searched_when_each_block_has_devices_of_its_own():
    # Together the two devices are worth 19 and take 15 s; either alone is worth less than its delay.
    slow = 2 ** (1 / 15) - 1
    problem = small_problem(
        contribution=[10.0, 9.0, 0.0],
        channel_gain=[[slow, 0.0], [0.0, 2 * slow], [1.0, 1.0]],
        max_power_w=1.0,
        workload_cycles=0.0,
        energy_weight=0.0,
        delay_weight=1.0,
    )
    found = allocate(problem)
    assert found.selected.tolist() == [0, 1]
    assert found.objective == pytest.approx(4.0)
