from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from fedwave.allocation import Status, allocate
from fedwave.allocation.computing.cpu_frequency import (
    compute_cost,
    random_cpu_frequencies,
    selfish_cpu_frequencies,
    solve_cpu_frequencies,
)
from tests.allocation.allocation_oracles import cpu_cost, frequencies_by_stragglers
from tests.allocation.allocation_problems import paper_problem, small_problem


@pytest.mark.parametrize("seed", range(30))
def test_closed_form_equals_the_literal_straggler_loop_of_lemma_4(seed):
    problem = paper_problem(seed, num_devices=1 + seed % 12, max_frequency_hz=10.0 if seed % 2 else 0.3)
    found = solve_cpu_frequencies(problem).cpu_frequency_hz
    assert_allclose(found, frequencies_by_stragglers(problem), rtol=1e-12)
    assert_allclose(compute_cost(problem, found), cpu_cost(problem, found), rtol=1e-12)


def test_stationary_where_no_frequency_is_at_its_limit():
    problem = paper_problem(3, max_frequency_hz=1e6, energy_weight=2.0, delay_weight=3.0)
    frequency = solve_cpu_frequencies(problem).cpu_frequency_hz
    # KKT: the multipliers eta_1 iota nu^3 of "device i ends by T" add up to eta_2.
    multipliers = problem.energy_weight * problem.capacitance * frequency**3
    assert_allclose(multipliers.sum(), problem.delay_weight, rtol=1e-12)


def test_where_a_limit_binds_faster_would_be_better_and_impossible():
    problem = paper_problem(3, max_frequency_hz=np.linspace(0.1, 2, 100))
    frequency = solve_cpu_frequencies(problem).cpu_frequency_hz
    multipliers = problem.energy_weight * problem.capacitance * frequency**3
    assert multipliers.sum() < problem.delay_weight
    assert np.isclose(frequency, problem.max_frequency_hz).any()
    assert (frequency <= problem.max_frequency_hz).all()


def test_no_point_on_a_fine_grid_is_better():
    problem = small_problem()
    best = compute_cost(problem, solve_cpu_frequencies(problem).cpu_frequency_hz)
    grid = np.linspace(0.02, 1, 40)
    for a in grid:
        for b in grid:
            for c in grid:
                assert cpu_cost(problem, problem.max_frequency_hz * [a, b, c]) >= best * (1 - 1e-12)


def test_devices_without_work_do_not_compute():
    problem = small_problem(workload_cycles=[0.0, 2.0, 0.0])
    frequency = solve_cpu_frequencies(problem).cpu_frequency_hz
    assert frequency[0] == frequency[2] == 0
    assert allocate(problem).compute_delay_s > 0
    assert allocate(small_problem(workload_cycles=0.0)).compute_delay_s == 0


def test_free_energy_means_the_fastest_common_finish():
    problem = small_problem(energy_weight=0.0)
    found = allocate(problem)
    assert found.compute_delay_s == pytest.approx(2.0)  # device 1: 2 cycles at 1 Hz


def test_work_at_frequency_zero_is_infeasible_and_names_the_device():
    for method in ("optimal", "ives", "greedy", "random", "chen2020", "fedl-power"):
        found = allocate(small_problem(max_frequency_hz=[1, 0, 1]), method, rng=np.random.default_rng(0))
        assert found.status is Status.INFEASIBLE
        assert found.reason.startswith("device 1 has 2 cycles of work but max_frequency_hz = 0")
        assert found.objective == -np.inf


def test_without_delay_weight_the_upload_deadline_holds_for_computing_too():
    found = allocate(small_problem(delay_weight=0.0, max_delay_s=7.0))
    assert found.compute_delay_s == pytest.approx(7.0)
    assert allocate(small_problem(delay_weight=0.0, max_delay_s=0.9)).compute_delay_s == pytest.approx(2.0)


def test_compute_deadline_is_respected_or_reported():
    relaxed = allocate(small_problem(energy_weight=50.0))
    hurried = allocate(small_problem(energy_weight=50.0, max_compute_delay_s=2.5))
    assert relaxed.compute_delay_s > 2.5
    assert hurried.compute_delay_s == pytest.approx(2.5)
    impossible = allocate(small_problem(max_compute_delay_s=1.0))
    assert impossible.status is Status.INFEASIBLE
    assert "device 1 cannot compute by 1 s even at full frequency (it needs 2 s)" in impossible.reason


def test_selfish_frequencies_solve_eq_55():
    problem = paper_problem(0)
    found = selfish_cpu_frequencies(problem).cpu_frequency_hz
    for i in range(20):
        grid = np.linspace(1e-3, 1, 20_001) * problem.max_frequency_hz[i]
        work = problem.workload_cycles[i]

        def cost(nu, i=i, work=work):
            return problem.capacitance[i] * work * nu**2 / 2 + work / nu

        assert cost(found[i]) <= cost(grid).min() + 1e-12
        stationary = (problem.delay_weight / (problem.energy_weight * problem.capacitance[i])) ** (1 / 3)
        assert_allclose(found[i], min(stationary, problem.max_frequency_hz[i]))


def test_random_frequencies_are_uniform_on_the_feasible_region():
    problem = paper_problem(0, num_devices=20_000, max_frequency_hz=2.0)
    share = random_cpu_frequencies(problem, rng=np.random.default_rng(1)).cpu_frequency_hz / 2.0
    assert share.min() > 0
    assert share.max() <= 1
    assert share.mean() == pytest.approx(0.5, abs=5 / np.sqrt(12 * 20_000))  # five standard errors


def test_huge_workloads_do_not_overflow():
    problem = small_problem(workload_cycles=[1e150, 1e149, 1e148], max_frequency_hz=1e9, capacitance=1e-28)
    assert np.isfinite(solve_cpu_frequencies(problem).cpu_frequency_hz).all()
