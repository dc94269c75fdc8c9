from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from fedwave.allocation import allocate
from fedwave.allocation.computing.cpu_frequency import compute_cost
from fedwave.allocation.uploads.delay_cost import DelayCost, falling_root
from fedwave.allocation.uploads.power import energy_factor
from fedwave.allocation.uploads.snr_range import upload_deadline_s
from tests.allocation.allocation_problems import link_problem, small_problem
from tests.allocation.link_oracle import Computing


def hurried_problem(seed):
    rng = np.random.default_rng(seed)
    while True:
        problem = link_problem(rng, ["round", *(["floors"] if seed % 2 else [])])
        if upload_deadline_s(problem) > 0.05:
            return problem


def by_definition(problem, delay_s):
    """Return eta_2 delta plus what computing costs more than if nobody uploaded."""
    end = problem.max_round_delay_s - problem.fixed_delay_s
    computing = Computing(problem)
    return problem.delay_weight * delay_s + float(computing.by(end - delay_s)) - float(computing.by(end))


@pytest.mark.parametrize("seed", range(30))
def test_the_cost_is_the_delays_and_the_hurry_of_the_cpus(seed):
    problem = hurried_problem(seed)
    delay = DelayCost.of(problem)
    for share in (1e-3, 0.2, 0.5, 0.9, 0.999):
        delay_s = share * upload_deadline_s(problem)
        snr = math.expm1(min(problem.nat_delay_s / delay_s, 600.0))
        delay_s = problem.nat_delay_s / math.log1p(snr)
        assert delay.at(snr) == pytest.approx(by_definition(problem, delay_s), rel=1e-7, abs=1e-7)


@pytest.mark.parametrize("seed", range(30))
def test_it_is_convex_and_rises_with_the_delay(seed):
    problem = hurried_problem(seed)
    delay = DelayCost.of(problem)
    times = np.linspace(0.02, 0.999, 200) * upload_deadline_s(problem)
    nats = np.minimum(problem.nat_delay_s / times, 600.0)
    cost = np.array([delay.at(math.expm1(v)) for v in nats])
    rises = np.diff(cost) / np.diff(problem.nat_delay_s / nats)
    scale = 1e-9 * np.abs(rises).max() + 1e-12
    assert (rises >= -scale).all()
    assert (np.diff(rises) >= -scale).all()
    slopes = np.array([delay.slope(v) for v in nats]) / problem.nat_delay_s
    assert (slopes[1:] >= rises - 1e-6 * np.abs(rises) - scale).all()  # steeper at the later end
    assert (slopes[:-1] <= rises + 1e-6 * np.abs(rises) + scale).all()


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("unit_cost", [0.0, 1e-6, 0.1, 1.0, 50.0])
def test_the_best_snr_beats_a_fine_grid(seed, unit_cost):
    problem = hurried_problem(seed)
    delay = DelayCost.of(problem)
    smallest = math.expm1(min(problem.nat_delay_s / upload_deadline_s(problem), 500.0))
    largest = smallest * 40 + 5

    def cost(snr):
        return unit_cost * energy_factor(snr) + delay.at(snr)

    found = delay.best_snr(unit_cost, smallest=smallest, largest=largest)
    assert smallest <= found <= largest
    grid = np.concatenate([np.geomspace(smallest, largest, 3000), found * (1 + np.linspace(-1e-3, 1e-3, 50))])
    least = min(cost(float(snr)) for snr in np.clip(grid, smallest, largest))
    assert cost(found) <= least + 1e-11 * (abs(least) + unit_cost)


def test_without_work_the_deadline_bounds_the_upload_alone():
    problem = small_problem(workload_cycles=0.0, max_round_delay_s=1.5)
    delay = DelayCost.of(problem)
    assert delay.hurry is None
    assert delay.at(1.0) == pytest.approx(0.5)  # one second at an SNR of 1
    assert allocate(problem).upload_delay_s <= 1.5


def test_the_hurry_begins_where_computing_and_upload_no_longer_fit():
    problem = small_problem(max_frequency_hz=8.0, max_round_delay_s=5.0)
    delay = DelayCost.of(problem)
    free = allocate(small_problem(max_frequency_hz=8.0))
    assert delay.hurry is not None
    assert delay.hurry.slack_s == pytest.approx(5.0 - free.compute_delay_s)
    cost = compute_cost(problem, free.cpu_frequency_hz) - 0.5 * free.compute_delay_s
    assert delay.hurry.curve.energy_cost(free.compute_delay_s) == pytest.approx(cost)


def test_a_falling_function_is_solved_or_its_end_returned():
    assert falling_root(lambda v: 1.0 - v, 0.0, 10.0) == pytest.approx(math.e - 1)
    assert falling_root(lambda v: -1.0 - v, 0.5, 10.0) == 0.5
    assert falling_root(lambda v: 100.0 - v, 0.5, 10.0) == 10.0
    assert falling_root(lambda v: 1.0 if v < 1.0 else -1.0, 0.0, 10.0) == pytest.approx(math.e - 1)  # a jump
    assert falling_root(lambda v: 1.0, 3.0, 3.0) == 3.0


@pytest.mark.parametrize("seed", range(20))
def test_a_little_less_snr_never_costs_less_than_the_delay_itself(seed):
    """Also where rounding carries a delay past the slack of CPUs that cannot be hurried."""
    base = hurried_problem(seed)
    fixed = replace(base, delay_weight=10.0, fixed_delay_s=0.0, max_frequency_hz=base.max_frequency_hz)
    delay = DelayCost.of(fixed)
    if delay.hurry is None or upload_deadline_s(fixed) <= 0.0:
        return
    for share in (1 - 1e-12, 1.0, 1 + 1e-15, 1 + 1e-12):
        nats = fixed.nat_delay_s / (upload_deadline_s(fixed) * share)
        assert delay.slope(nats) >= fixed.nat_delay_s * fixed.delay_weight
