from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fedwave.allocation import AllocationProblem, Status, account, allocate, violations
from fedwave.allocation.computing.compute_curve import ComputeCurve, frequency_floor_hz
from fedwave.allocation.computing.cpu_frequency import (
    compute_cost,
    random_cpu_frequencies,
    selfish_cpu_frequencies,
    solve_cpu_frequencies,
)
from fedwave.errors import ProblemError
from tests.allocation.allocation_oracles import cpu_cost
from tests.allocation.allocation_problems import paper_problem, small_problem
from tests.allocation.link_oracle import Computing


def with_floors(seed: int, **changes) -> AllocationProblem:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 12))
    fastest = rng.uniform(0.5, 4, n)
    values = {
        "num_devices": n,
        "max_frequency_hz": fastest,
        "min_frequency_hz": fastest * rng.uniform(0, 1, n) * (rng.random(n) > 0.3),
        "workload_cycles": rng.uniform(0, 3, n) * (rng.random(n) > 0.2),
        "energy_weight": float(10 ** rng.uniform(-1.5, 1.5)),
        "delay_weight": float(10 ** rng.uniform(-1.5, 1.5)),
    }
    return paper_problem(seed, **(values | changes))


@pytest.mark.parametrize("seed", range(60))
def test_frequencies_with_floors_cost_no_more_than_any_common_finish(seed):
    problem = with_floors(seed)
    frequency = solve_cpu_frequencies(problem).cpu_frequency_hz
    busy = problem.workload_cycles > 0
    assert (frequency[busy] >= problem.min_frequency_hz[busy]).all()
    assert (frequency <= problem.max_frequency_hz * (1 + 1e-12)).all()
    assert (frequency[~busy] == 0).all()
    found = compute_cost(problem, frequency)
    assert found == pytest.approx(cpu_cost(problem, frequency))
    assert found == pytest.approx(float(Computing(problem).by(np.inf)), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("seed", range(10))
def test_no_single_frequency_can_be_changed_for_the_better(seed):
    problem = with_floors(seed)
    frequency = solve_cpu_frequencies(problem).cpu_frequency_hz
    best = compute_cost(problem, frequency)
    for i in np.flatnonzero(problem.workload_cycles > 0):
        for factor in np.concatenate([np.linspace(0.2, 3, 60), 1 + np.array([-1e-4, 1e-4])]):
            other = frequency.copy()
            other[i] = np.clip(
                frequency[i] * factor, problem.min_frequency_hz[i], problem.max_frequency_hz[i]
            )
            assert compute_cost(problem, other) >= best * (1 - 1e-12)


@pytest.mark.parametrize("seed", range(20))
def test_the_curve_is_the_energy_and_its_slope(seed):
    problem = with_floors(seed)
    curve = ComputeCurve.of(problem)
    busy = problem.workload_cycles > 0
    if not busy.any():
        return
    for finish_s in problem.fastest_compute_s * np.array([1.0, 1.3, 2.0, 7.0, 1e3]):
        frequency = np.maximum(problem.workload_cycles / finish_s, problem.min_frequency_hz) * busy
        energy = (
            problem.energy_weight * 0.5 * (problem.capacitance * problem.workload_cycles * frequency**2).sum()
        )
        assert curve.energy_cost(finish_s) == pytest.approx(float(energy), rel=1e-12)
        step = 1e-6 * finish_s
        slope = (curve.energy_cost(finish_s + step) - curve.energy_cost(finish_s - step)) / (2 * step)
        assert curve.hurry(finish_s) == pytest.approx(-slope, rel=1e-4, abs=1e-9)


def test_floors_by_hand():
    # Each device wants (eta_2 / sum iota)^(1/3) times its work; device 1 may not go below 1.5 Hz.
    problem = small_problem(
        workload_cycles=[1.0, 1.0, 1.0],
        capacitance=[1.0, 1.0, 0.0],
        max_frequency_hz=2.0,
        min_frequency_hz=[0.0, 1.5, 0.0],
        energy_weight=1.0,
        delay_weight=0.125,
    )
    found = solve_cpu_frequencies(problem).cpu_frequency_hz
    np.testing.assert_allclose(found, [0.5, 1.5, 0.5])  # 1 / T with T^3 = 1 / 0.125
    tied = small_problem(
        workload_cycles=1.0, capacitance=1.0, max_frequency_hz=2.0, min_frequency_hz=1.0, delay_weight=1e-3
    )
    np.testing.assert_allclose(solve_cpu_frequencies(tied).cpu_frequency_hz, 1.0)  # all at their floor
    assert allocate(tied).compute_delay_s == pytest.approx(1.0)


def test_time_may_end_where_a_device_reaches_its_floor():
    # Below 2 s both follow: 2 / T^3 > 0.2. Above, only one does: 1 / T^3 < 0.2. So T = 2 exactly.
    problem = small_problem(
        workload_cycles=[1.0, 1.0, 0.0],
        capacitance=1.0,
        max_frequency_hz=2.0,
        min_frequency_hz=[0.5, 0.0, 0.0],
        energy_weight=1.0,
        delay_weight=0.2,
    )
    np.testing.assert_allclose(solve_cpu_frequencies(problem).cpu_frequency_hz, [0.5, 0.5, 0.0])


def test_limits_of_the_floors():
    free = small_problem(min_frequency_hz=0.25, energy_weight=0.0)
    assert allocate(free).compute_delay_s == pytest.approx(2.0)  # as fast as possible
    patient = small_problem(min_frequency_hz=0.25, delay_weight=0.0, max_delay_s=100.0)
    assert allocate(patient).compute_delay_s == pytest.approx(8.0)  # 2 cycles at 0.25 Hz
    mixed = small_problem(min_frequency_hz=[0.25, 0.0, 0.25], delay_weight=0.0, max_delay_s=100.0)
    assert allocate(mixed).compute_delay_s == pytest.approx(100.0)
    idle = small_problem(min_frequency_hz=0.5, workload_cycles=0.0)
    assert allocate(idle).cpu_frequency_hz.tolist() == [0.0, 0.0, 0.0]
    with pytest.raises(
        ProblemError, match=r"min_frequency_hz must be <= max_frequency_hz, got 1.2 > 1 at device 1. Lower it"
    ):
        small_problem(min_frequency_hz=[0.0, 1.2, 0.0])


@pytest.mark.parametrize("method", ["greedy", "random", "chen2020", "fedl-power", "ives"])
def test_every_method_keeps_the_floors(method):
    for seed in range(20):
        problem = with_floors(seed)
        found = allocate(problem, method, rng=np.random.default_rng(seed))
        assert violations(problem, found) == ()


def test_selfish_and_random_frequencies_start_at_the_floor():
    problem = small_problem(min_frequency_hz=[1.9, 0.9, 1.4], energy_weight=100.0)
    np.testing.assert_array_equal(selfish_cpu_frequencies(problem).cpu_frequency_hz, [1.9, 0.9, 1.4])
    drawn = random_cpu_frequencies(
        paper_problem(0, num_devices=5000, max_frequency_hz=2.0, min_frequency_hz=1.0),
        rng=np.random.default_rng(0),
    ).cpu_frequency_hz
    assert drawn.min() > 1.0
    assert drawn.mean() == pytest.approx(1.5, abs=5 * 0.29 / np.sqrt(5000))


def test_a_round_deadline_hurries_floored_devices_only_when_it_must():
    problem = small_problem(
        min_frequency_hz=0.4, max_frequency_hz=4.0, delay_weight=1e-3, max_round_delay_s=9.0
    )
    found = allocate(problem)
    assert found.status is Status.OPTIMAL
    assert violations(problem, found) == ()
    entry = account(problem, found)
    assert entry.compute_delay_s.max() + found.upload_delay_s <= 9.0 * (1 + 1e-9)


# Static power -----------------------------------------------------------------------------------------------


def with_static_power(seed: int, **changes) -> AllocationProblem:
    rng = np.random.default_rng(1000 + seed)
    problem = with_floors(seed)
    n = problem.num_devices
    values = {
        "static_power_w": 10.0 ** rng.uniform(-3, 2, n) * (rng.random(n) > 0.3),
        "capacitance": rng.uniform(0, 1, n) * (rng.random(n) > 0.15),
        "joules_per_cycle": rng.uniform(0, 1, n),
        "min_frequency_hz": problem.min_frequency_hz if rng.random() < 0.5 else None,
    }
    return replace(problem, **(values | changes))


@pytest.mark.parametrize("seed", range(60))
def test_with_static_power_no_common_finish_is_cheaper(seed):
    problem = with_static_power(seed)
    frequency = solve_cpu_frequencies(problem).cpu_frequency_hz
    found = compute_cost(problem, frequency)
    assert found == pytest.approx(cpu_cost(problem, frequency))
    assert found == pytest.approx(float(Computing(problem).by(np.inf)), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("seed", range(30))
def test_with_static_power_no_random_frequencies_are_cheaper(seed):
    problem = with_static_power(seed)
    rng = np.random.default_rng(seed)
    frequency = solve_cpu_frequencies(problem).cpu_frequency_hz
    best = compute_cost(problem, frequency)
    least = np.zeros(frequency.size) if problem.min_frequency_hz is None else problem.min_frequency_hz
    busy = problem.workload_cycles > 0
    for width in np.repeat([3.0, 0.3, 1e-2, 1e-4], 100):
        other = frequency * 10.0 ** rng.uniform(-width, width, frequency.size)
        other = np.where(busy, np.clip(other, np.maximum(least, 1e-9), problem.max_frequency_hz), 0.0)
        assert compute_cost(problem, other) >= best * (1 - 1e-12)
        if width < 1:  # all finish later, or earlier, together
            other = np.where(
                busy,
                np.clip(frequency * 10 ** rng.uniform(-width, width), least, problem.max_frequency_hz),
                0.0,
            )
            assert compute_cost(problem, other) >= best * (1 - 1e-12)


@pytest.mark.parametrize("seed", range(30))
def test_with_static_power_the_curve_is_the_energy_and_its_slope(seed):
    problem = with_static_power(seed)
    if not problem.workload_cycles.any():
        return
    curve, oracle = ComputeCurve.of(problem), Computing(replace(problem, delay_weight=0.0, max_delay_s=1.0))
    times = problem.fastest_compute_s * np.geomspace(1.0, 100.0, 40)
    energy = np.array([curve.energy_cost(time) for time in times])
    np.testing.assert_allclose(energy + oracle.fixed, oracle.cost(times), rtol=1e-11)
    hurry = np.array([curve.hurry(time) for time in times])
    assert (hurry >= 0).all()
    assert (np.diff(hurry) <= 1e-12 * hurry[0]).all()  # convex
    assert (np.diff(energy) <= 1e-12 * energy[0]).all()  # never rises
    for time in times[1:]:
        step = 1e-6 * time
        slope = (curve.energy_cost(time + step) - curve.energy_cost(time - step)) / (2 * step)
        assert curve.hurry(time) == pytest.approx(-slope, rel=1e-4, abs=1e-8 * energy[0] / time)


def test_static_power_by_hand():
    # nu* = (P_0 / iota)^(1/3) = 2; slower costs more, so with free time all run there.
    patient = small_problem(
        workload_cycles=1.0,
        capacitance=0.5,
        static_power_w=4.0,
        max_frequency_hz=9.0,
        delay_weight=0.0,
        max_delay_s=50.0,
    )
    np.testing.assert_allclose(solve_cpu_frequencies(patient).cpu_frequency_hz, 2.0)
    assert frequency_floor_hz(patient).tolist() == [2.0, 2.0, 2.0]
    # One works, a joule costs 1, a second 12: T^3 = iota w^3 / (eta_2 + P_0) = 0.5 / 16, nu = 32^(1/3).
    alone = replace(patient, workload_cycles=[0.0, 1.0, 0.0], energy_weight=1.0, delay_weight=12.0)
    np.testing.assert_allclose(solve_cpu_frequencies(alone).cpu_frequency_hz, [0.0, 32 ** (1 / 3), 0.0])
    # Its own choice is the same, alone or not.
    np.testing.assert_allclose(selfish_cpu_frequencies(alone).cpu_frequency_hz, [0.0, 32 ** (1 / 3), 0.0])
    limits = replace(patient, max_frequency_hz=[1.5, 9.0, 9.0], min_frequency_hz=[0.0, 3.0, 0.0])
    np.testing.assert_allclose(solve_cpu_frequencies(limits).cpu_frequency_hz, [1.5, 3.0, 2.0])
    only_time = replace(patient, capacitance=0.0)  # the sooner it is done, the less it drew
    np.testing.assert_allclose(solve_cpu_frequencies(only_time).cpu_frequency_hz, 9.0)
    costs = account(alone, allocate(alone))
    nu = 32 ** (1 / 3)
    assert costs.compute_energy_j[1] == pytest.approx(0.25 * nu**2 + 4.0 / nu)


def test_no_static_power_changes_no_bit():
    for seed in range(20):
        plain = with_floors(seed)
        zero = replace(plain, static_power_w=np.zeros(plain.num_devices), joules_per_cycle=0.0)
        for solve in (solve_cpu_frequencies, selfish_cpu_frequencies):
            np.testing.assert_array_equal(solve(plain).cpu_frequency_hz, solve(zero).cpu_frequency_hz)
        assert allocate(plain).objective == allocate(zero).objective


def test_joules_of_every_cycle_are_paid_and_decide_nothing():
    plain = small_problem()
    dear = small_problem(joules_per_cycle=[0.5, 2.0, 4.0])  # times 1, 2 and 0.5 cycles: 6.5 J
    before, after = allocate(plain), allocate(dear)
    np.testing.assert_array_equal(before.cpu_frequency_hz, after.cpu_frequency_hz)
    np.testing.assert_array_equal(before.block_of_device, after.block_of_device)
    assert after.energy_j == pytest.approx(before.energy_j + 6.5)
    assert after.objective == pytest.approx(before.objective - 0.25 * 6.5)
    assert after.upper_bound == pytest.approx(after.objective)
