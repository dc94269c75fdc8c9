"""Prices for each device: a grid over delays and all assignments, plans at random, and one price for all."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fedwave.allocation import AllocationProblem, allocate, violations
from fedwave.allocation.priced import solve_priced
from fedwave.allocation.solution import account
from fedwave.errors import ProblemError
from fedwave.wireless.rate import RadioPower
from tests.allocation.allocation_oracles import assignments
from tests.allocation.allocation_problems import paper_problem


def problem(seed: int, **changes: Any) -> AllocationProblem:
    """Four devices on two blocks; nobody computes unless the changes say so."""
    idle = {"workload_cycles": np.zeros(4), **changes}
    return paper_problem(seed, num_devices=4, num_blocks=2, **idle)


def draw_prices(seed: int) -> np.ndarray:
    """Prices over four decades, some of them zero."""
    rng = np.random.default_rng(seed)
    return 10.0 ** rng.uniform(-2, 2, 4) * (rng.random(4) < 0.8)


def best_on_a_grid(given: AllocationProblem, prices: np.ndarray) -> float:
    """The best assignment and common delay: all that upload end together, as a slower upload is cheaper."""
    best = 0.0
    full_snr = np.outer(given.max_power_w * given.channel_gain, 1.0 / given.block_noise_w)
    fastest = given.model_bits / (given.bandwidth_hz * np.log2(1.0 + full_snr)) * (1.0 + 1e-12)
    delays = np.append(np.geomspace(1e-2, 1e3, 4000), fastest)
    snr = 2.0 ** (given.model_bits / (given.bandwidth_hz * delays)) - 1.0
    for pairs in assignments(4, 2):
        value, is_feasible = -given.delay_weight * delays, np.ones(len(delays), dtype=bool)
        for device, block in pairs:
            power = snr * given.block_noise_w[block] / given.channel_gain[device]
            is_feasible &= power <= given.max_power_w[device]
            value = value + given.contribution[device] - prices[device] * power * delays
        if pairs and is_feasible.any():
            best = max(best, float(value[is_feasible].max()))
    return best


@pytest.mark.parametrize("seed", range(6))
def test_no_point_of_a_grid_is_better_than_the_plan_or_its_bound(seed: int) -> None:
    given, prices = problem(seed), draw_prices(seed)
    found = solve_priced(given, prices)
    best = best_on_a_grid(given, prices)
    assert found.value >= best - 1e-9 * abs(best)
    assert found.value == pytest.approx(best, rel=1e-4, abs=1e-6)  # the grid is fine
    assert found.value <= found.upper_bound <= found.value + 1e-5 * max(abs(found.value), 1.0)


@pytest.mark.parametrize("seed", range(8))
def test_the_value_is_that_of_the_account(seed: int) -> None:
    given, prices = paper_problem(seed, num_devices=5, num_blocks=3), np.array([0.0, 0.1, 1.0, 3.0, 20.0])
    found = solve_priced(given, prices)
    costs = account(given, found.allocation)
    delay_s = costs.compute_delay_s.max() + costs.upload_delay_s.max()
    by_hand = given.contribution[found.allocation.selected].sum() - prices @ costs.energy_j - delay_s
    assert found.value == pytest.approx(by_hand, rel=1e-12)
    assert (found.allocation.transmit_power_w <= given.max_power_w).all()


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("changes", [{}, {"static_power_w": 0.3, "joules_per_cycle": 0.2}])
def test_one_price_for_all_is_the_energy_weight(seed: int, changes: dict[str, float]) -> None:
    given = paper_problem(seed, num_devices=8, num_blocks=3, energy_weight=0.7, **changes)
    plain, found = allocate(given), solve_priced(given, np.full(8, 0.7))
    assert found.value == pytest.approx(plain.objective, rel=1e-6)
    assert found.upper_bound >= plain.objective - 1e-9 * abs(plain.objective)


def test_without_prices_joules_are_free() -> None:
    given = problem(3)
    found = solve_priced(given, np.zeros(4))
    assert found.value == pytest.approx(allocate(replace(given, energy_weight=0.0)).objective, rel=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_no_plan_at_random_beats_the_bound_where_circuits_draw_power(seed: int) -> None:
    radio = RadioPower(amplifier_efficiency=0.4, circuit_power_w=0.5)
    given = paper_problem(
        seed, num_devices=4, num_blocks=2, radio=radio, static_power_w=0.2, joules_per_cycle=0.1
    )
    prices = draw_prices(seed)
    found = solve_priced(given, prices)
    assert found.value <= found.upper_bound
    rng, best = np.random.default_rng(seed), -np.inf
    for _ in range(200):
        chosen = rng.permutation(4)[: rng.integers(0, 3)]
        block_of_device = np.full(4, -1)
        block_of_device[chosen] = rng.permutation(2)[: len(chosen)]
        power_w = np.where(block_of_device >= 0, given.max_power_w * rng.uniform(0.02, 1.0, 4), 0.0)
        plan = replace(
            found.allocation,
            block_of_device=block_of_device,
            transmit_power_w=power_w,
            cpu_frequency_hz=given.max_frequency_hz * rng.uniform(0.1, 1.0, 4),
        )
        costs = account(given, plan)
        delay_s = costs.compute_delay_s.max() + costs.upload_delay_s.max()
        best = max(best, given.contribution[chosen].sum() - float(prices @ costs.energy_j) - delay_s)
    assert best <= found.upper_bound


def test_a_plan_at_a_higher_price_takes_no_more_of_that_devices_joules() -> None:
    given = problem(5)
    taken = []
    for price in (0.0, 0.5, 2.0, 10.0, 1e4):
        costs = account(given, solve_priced(given, np.array([price, 1.0, 1.0, 1.0])).allocation)
        taken.append(float(costs.energy_j[0]))
    assert taken == sorted(taken, reverse=True)  # the optimal value is convex in the price
    assert taken[0] > taken[-1] == 0.0


@pytest.mark.parametrize("prices", [np.ones(3), np.array([1.0, -1.0, 0.0, 0.0]), np.full(4, np.nan)])
def test_prices_that_are_none_are_refused(prices: np.ndarray) -> None:
    with pytest.raises(ProblemError, match="prices must be 4 finite numbers >= 0"):
        solve_priced(problem(0), prices)


@pytest.mark.parametrize("access", ["shared-band", "blocks", "tdma"])
def test_other_accesses_keep_their_hertz(access: str) -> None:
    """With one price for all the priced plan is the optimum at that weight, hertz and joules included."""
    problem = paper_problem(2, num_devices=6, num_blocks=3, interference_w=np.full(3, 0.4), access=access)
    found = solve_priced(problem, np.full(6, 1.0)).allocation
    best = allocate(problem)
    assert found.bandwidth_of_device_hz == pytest.approx(best.bandwidth_of_device_hz)
    assert found.objective == pytest.approx(best.objective, rel=1e-6)
    assert violations(problem, found) == ()
