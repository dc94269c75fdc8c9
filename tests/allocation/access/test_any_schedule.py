"""A bound on all schedules with circuit power, against random schedules and scipy's search for one device."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from fedwave.allocation import allocate
from fedwave.allocation.access.any_schedule import bound_of_any_schedule
from fedwave.wireless.rate import RadioPower
from tests.allocation.access.access_oracles import alike_problem, computing_cost, upload


@pytest.mark.parametrize("seed", range(8))
def test_no_access_is_worth_more(seed: int) -> None:
    features = ("circuit", "amplifier", "round") if seed % 2 else ("circuit", "cap")
    problem = alike_problem(np.random.default_rng(seed), "blocks", n=6, m=3, features=features)
    bound = bound_of_any_schedule(problem)
    for access in ("one-block", "blocks", "shared-band", "tdma"):
        assert allocate(replace(problem, access=access)).objective <= bound + 1e-9


@pytest.mark.parametrize("seed", range(8))
def test_no_schedule_is_worth_more(seed: int) -> None:
    """Each device on for a time of its own, with areas that fit into the band: packing is even left out."""
    rng = np.random.default_rng([seed, 5])
    problem = alike_problem(rng, "shared-band", n=4, m=2, features=("circuit", "amplifier"))
    bound = bound_of_any_schedule(problem) + 1e-9
    band = problem.num_blocks * problem.bandwidth_hz
    best = -math.inf
    for _ in range(2000):
        chosen = np.flatnonzero(rng.random(4) < 0.6)
        delay = float(rng.uniform(0.3, 6.0))
        on = delay * rng.uniform(0.2, 1.0, chosen.size)
        area = rng.dirichlet(np.ones(chosen.size)) * band * delay if chosen.size else np.zeros(0)
        joules = [
            upload(problem, int(i), q / t, t) if q / t <= band else math.inf
            for i, q, t in zip(chosen, area, on, strict=True)
        ]
        value = problem.contribution[chosen].sum() - problem.energy_weight * sum(joules)
        value -= problem.delay_weight * delay + computing_cost(problem, delay)
        best = max(best, value)
        assert value <= bound
    assert best > -math.inf


@pytest.mark.parametrize("seed", range(6))
def test_of_one_device_it_is_full_power_for_as_short_as_can_be(seed: int) -> None:
    """By scipy: the device pays its full drain for the time that its area takes at full power."""
    rng = np.random.default_rng([seed, 6])
    problem = alike_problem(rng, "shared-band", n=1, m=2, features=("circuit", "amplifier"))
    problem = replace(problem, contribution=np.array([30.0]))
    nats, band = problem.model_bits * math.log(2), problem.num_blocks * problem.bandwidth_hz
    unit = nats * problem.block_noise_w[0] / problem.bandwidth_hz / problem.channel_gain[0]

    def cost(log_v: float) -> float:
        v = math.exp(log_v)
        on = unit * math.expm1(v) / v / problem.max_power_w[0]
        drain = problem.radio.drain_w(problem.max_power_w)[0]
        return float(problem.energy_weight * drain * on + problem.delay_weight * max(on, nats / v / band))

    found = minimize_scalar(cost, bounds=(-8, 3), method="bounded", options={"xatol": 1e-12})
    assert bound_of_any_schedule(problem) == pytest.approx(30.0 - found.fun, rel=1e-5)


def test_without_circuit_power_it_is_the_shared_band_s() -> None:
    problem = alike_problem(np.random.default_rng(2), "blocks", n=6, m=3)
    shared = allocate(replace(problem, access="shared-band"))
    assert bound_of_any_schedule(problem) == pytest.approx(shared.upper_bound)
    dear = replace(problem, radio=RadioPower(circuit_power_w=0.2))
    assert bound_of_any_schedule(dear) < shared.upper_bound
    mute = replace(dear, max_power_w=np.where(np.arange(6) == 0, 0.0, dear.max_power_w))
    assert math.isfinite(bound_of_any_schedule(mute))


@pytest.mark.parametrize("seed", range(8))
def test_where_blocks_differ_no_split_of_power_and_time_over_them_is_worth_more(seed: int) -> None:
    """Random schedules: each block's time is shared out, and each device's power is split over its blocks."""
    rng = np.random.default_rng([seed, 7])
    alike = alike_problem(rng, "one-block", n=4, m=3)
    problem = replace(
        alike,
        contribution=rng.uniform(5.0, 30.0, 4),
        channel_gain=alike.channel_gain[:, None] * rng.exponential(1.0, (4, 3)),
        interference_w=rng.uniform(0.0, 0.8, 3),
    )
    bound = bound_of_any_schedule(problem) + 1e-9
    assert allocate(problem).objective <= bound
    nats, worth, closest = problem.model_bits * math.log(2), 0, math.inf
    for _ in range(2000):
        chosen = np.flatnonzero(rng.random(4) < 0.6)
        if not chosen.size:
            continue
        share = rng.dirichlet(np.full(chosen.size, 0.5), size=3).T  # of each block's hertz, all the time
        split = rng.dirichlet(np.ones(3), size=chosen.size)
        power_w = split * problem.max_power_w[chosen, None] * rng.random((chosen.size, 1))
        snr = power_w * problem.channel_gain[chosen] / (share * problem.block_noise_w + 1e-300)
        rate = (share * problem.bandwidth_hz * np.log1p(snr)).sum(axis=1)
        if not (rate > 0.0).all():
            continue
        time_s = nats / rate
        value = problem.contribution[chosen].sum() - problem.energy_weight * power_w.sum(axis=1) @ time_s
        delay = float(time_s.max())
        value -= problem.delay_weight * delay + computing_cost(problem, delay)
        assert value <= bound
        worth, closest = worth + 1, min(closest, bound - value)
    assert worth > 500
    assert closest < 0.5 * problem.contribution.sum()  # random schedules come near enough to be a test
