from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from fedwave import load_cell, problem_of_cell
from fedwave.allocation import AllocationProblem, allocate
from fedwave.explore.delay_curve import delay_curve, ives_start_s, ives_steps
from fedwave.wireless.rate import RadioPower, RateModel


def drawn(
    preset: str, seed: int, num_devices: int = 14, num_blocks: int = 4, **more: object
) -> AllocationProblem:
    cell = load_cell(preset, num_devices=num_devices, seed=seed, overrides={"num_blocks": num_blocks})
    u = np.random.default_rng(seed).uniform(0, 10 if preset == "paper" else 2, num_devices)
    si = {} if preset == "paper" else {"model_bits": 3.6e6, "energy_weight": 0.1, "delay_weight": 1.0}
    return problem_of_cell(cell, u, **{**si, **more})  # type: ignore[arg-type]


def value_by_definition(problem: AllocationProblem, delay_s: float) -> float:
    """Return the best sum of u - eta_1 p delta over matchings, less the delay's cost: Eq. (41)-(43) by hand.

    For problems where all send at the common delay: Shannon's rate, no circuit power, no packet errors.
    """
    worth = np.zeros((problem.num_devices, problem.num_blocks))
    for i, m in itertools.product(range(problem.num_devices), range(problem.num_blocks)):
        gain = problem.channel_gain[i] if problem.channel_gain.ndim == 1 else problem.channel_gain[i, m]
        snr = 2.0 ** (problem.model_bits / (problem.bandwidth_hz * delay_s)) - 1.0
        power = snr * problem.block_noise_w[m] / gain
        if power <= problem.max_power_w[i] * (1 + 1e-12):
            worth[i, m] = max(problem.contribution[i] - problem.energy_weight * power * delay_s, 0.0)
    row, column = linear_sum_assignment(-worth)
    return float(worth[row, column].sum()) - problem.delay_weight * delay_s


def test_the_curve_is_the_best_matching_at_each_delay() -> None:
    problem = drawn("paper", 1)
    best = allocate(problem)
    idle = total_of_computing(problem)
    curve = delay_curve(problem, best, slowest_s=ives_start_s(problem))
    assert curve is not None
    by_hand = [value_by_definition(problem, delay) - idle for delay in curve.delay_s]
    np.testing.assert_allclose(curve.objective, by_hand, rtol=1e-9, atol=1e-9)


def total_of_computing(problem: AllocationProblem) -> float:
    """Return what computing costs: eta_1 E + eta_2 T of an allocation among no devices."""
    return -allocate(problem, selected=[]).objective


CASES = {
    "paper": lambda seed: drawn("paper", seed),
    "street": lambda seed: drawn("umi-3.5ghz", seed),
    "deadline": lambda seed: drawn("umi-3.5ghz", seed, max_round_delay_s=9.0),
    "packet errors": lambda seed: drawn("paper", seed, packet_error_waterfall=0.05),
    "modem": lambda seed: drawn(
        "paper",
        seed,
        delay_weight=0.2,
        rate=RateModel(efficiency=0.6, max_spectral_efficiency=0.9),
        radio=RadioPower(amplifier_efficiency=0.4, circuit_power_w=0.02),
    ),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("seed", range(3))
def test_the_curve_touches_the_certified_optimum_and_nothing_exceeds_its_bound(case: str, seed: int) -> None:
    problem = CASES[case](seed)
    best = allocate(problem)
    assert best.num_selected > 0
    curve = delay_curve(problem, best, slowest_s=ives_start_s(problem))
    assert curve is not None
    size = abs(best.objective) + best.contribution
    assert curve.objective.max() <= best.upper_bound + 1e-9 * size
    assert curve.objective.max() == pytest.approx(best.objective, abs=1e-6 * size)
    assert (np.diff(curve.delay_s) > 0).all()
    assert len(curve.bound) == len(curve.delay_s) - 1
    # A finer curve lies under the steps of the coarse one, everywhere.
    fine = delay_curve(problem, best, slowest_s=0.61 * curve.delay_s[-1])
    assert fine is not None
    place = np.searchsorted(curve.delay_s, fine.delay_s) - 1
    inside = (place >= 0) & (place < len(curve.bound))
    assert inside.sum() > 60
    assert (fine.objective[inside] <= curve.bound[place[inside]] + 1e-9 * size).all()
    assert curve.bound.max() >= best.objective - 1e-9 * size


def test_the_bound_says_something() -> None:
    """A bound of infinity would be true as well; with 120 steps it is within a twentieth of the curve."""
    problem = drawn("paper", 1, num_devices=60, num_blocks=10)
    best = allocate(problem)
    curve = delay_curve(problem, best)
    assert curve is not None
    higher = np.maximum(curve.objective[1:], curve.objective[:-1])
    assert np.median(curve.bound - higher) < 0.05 * best.contribution


def test_nobody_who_can_upload_has_no_curve() -> None:
    problem = drawn("paper", 0, min_snr=1e9)
    assert delay_curve(problem, allocate(problem)) is None


def test_ives_starts_from_the_slowest_device_on_its_worst_block() -> None:
    for preset in ("paper", "umi-3.5ghz"):
        problem = drawn(preset, 2)
        slowest = 0.0
        for i, m in itertools.product(range(problem.num_devices), range(problem.num_blocks)):
            rate = problem.rate_bps_of(np.array([i]), np.array([m]), problem.max_power_w[[i]])[0]
            if rate > 0:
                slowest = max(slowest, problem.model_bits / rate)
        assert ives_start_s(problem) == pytest.approx(slowest, rel=1e-9)


def test_the_steps_of_ives_are_its_trace() -> None:
    longest = 0
    for seed in range(12):
        problem = drawn("paper", seed, num_devices=30, num_blocks=6)
        found = allocate(problem, "ives", keep_negative=True)
        steps = ives_steps(problem)
        assert [step.objective for step in steps] == pytest.approx(
            found.trace[: len(steps)].tolist(), rel=1e-9
        )
        assert steps[-1].objective == pytest.approx(found.objective, rel=1e-12)
        assert steps[-1].delay_s == found.upload_delay_s
        assert all(math.isfinite(step.delay_s) for step in steps)
        longest = max(longest, len(steps))
    assert longest >= 2
