"""Placement, shadowing, fading, interference and fleet draws against their theory.

Tolerances are about four standard errors of the statistic at the sample size used, so a wrong law fails and
chance does not; seeds are fixed.
"""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from fedwave.errors import ProblemError
from fedwave.wireless.distribution import Uniform
from fedwave.wireless.fading import rayleigh_power, rician_power
from fedwave.wireless.fleet_draw import FleetConfig, draw_fleet
from fedwave.wireless.geometry import ground_distance_m, place_by_distance, place_in_disc
from fedwave.wireless.interference import (
    DrawnInterference,
    EvenInterference,
    ListedInterference,
    NoInterference,
    NoiseRise,
)
from fedwave.wireless.shadowing import draw_shadowing_db


def test_devices_fill_the_ring_evenly_in_area():
    position_m = place_in_disc(40_000, radius_m=100, min_distance_m=20, rng=np.random.default_rng(0))
    distance_m = ground_distance_m(position_m)
    assert distance_m.min() >= 20
    assert distance_m.max() <= 100
    # The share within r is (r^2 - 20^2) / (100^2 - 20^2): 0.21875 at 50 m, 0.625 at 80 m.
    assert np.mean(distance_m < 50) == pytest.approx(0.21875, abs=0.01)
    assert np.mean(distance_m < 80) == pytest.approx(0.625, abs=0.01)
    assert_allclose(position_m.mean(axis=0), 0.0, atol=1.1)  # std of a coordinate is 51 m


def test_distances_can_be_uniform_themselves():
    position_m = place_by_distance(40_000, min_distance_m=2, max_distance_m=50, rng=np.random.default_rng(0))
    distance_m = ground_distance_m(position_m)
    assert distance_m.mean() == pytest.approx(26.0, abs=0.3)
    assert np.mean(distance_m < 14) == pytest.approx(0.25, abs=0.01)


def test_shadowing_has_mean_zero_and_the_asked_spread():
    shadowing_db = draw_shadowing_db(np.repeat([4.0, 7.82], 50_000), rng=np.random.default_rng(0))
    assert shadowing_db.mean() == pytest.approx(0.0, abs=0.08)
    assert shadowing_db[:50_000].std() == pytest.approx(4.0, rel=0.013)
    assert shadowing_db[50_000:].std() == pytest.approx(7.82, rel=0.013)
    # Normal: 68.27 % within one standard deviation.
    assert np.mean(np.abs(shadowing_db[:50_000]) < 4.0) == pytest.approx(0.6827, abs=0.009)


def test_rayleigh_power_is_exponential_with_mean_one():
    power = rayleigh_power((1000, 200), rng=np.random.default_rng(0))
    assert power.mean() == pytest.approx(1.0, abs=0.01)
    assert power.var() == pytest.approx(1.0, abs=0.03)
    assert np.mean(power < 0.1) == pytest.approx(0.0951626, abs=0.003)  # 1 - exp(-0.1)


@pytest.mark.parametrize("k_factor", [0.0, 1.0, 8.0])
def test_rician_power_has_mean_one_and_its_variance(k_factor):
    power = rician_power((1000, 200), k_factor=k_factor, rng=np.random.default_rng(0))
    assert power.mean() == pytest.approx(1.0, abs=0.01)
    assert power.var() == pytest.approx((1 + 2 * k_factor) / (1 + k_factor) ** 2, abs=0.03)


def test_rician_without_a_steady_path_fades_as_rayleigh():
    power = rician_power((1000, 200), k_factor=0.0, rng=np.random.default_rng(0))
    assert np.mean(power < 0.1) == pytest.approx(0.0951626, abs=0.003)


def test_blocks_and_devices_fade_independently():
    power = rayleigh_power((20_000, 3), rng=np.random.default_rng(0))
    correlation = np.corrcoef(power.T)
    assert_allclose(correlation, np.eye(3), atol=0.03)


def test_each_kind_of_interference_gives_its_powers():
    def draw(config):
        return config.draw_w(num_blocks=6, noise_w=2.0, rng=np.random.default_rng(0))

    assert_allclose(draw(NoInterference()), 0.0)
    assert_allclose(draw(DrawnInterference(power_w=0.3)), 0.3)
    # Chen et al.'s list for 6 blocks, in microwatts.
    assert_allclose(draw(EvenInterference(low_w=0.01, high_w=0.11)), [0.01, 0.03, 0.05, 0.07, 0.09, 0.11])
    assert_allclose(draw(NoiseRise(rise_db=3.0)), 2.0 * 0.9952623)  # 10^0.3 - 1
    assert_allclose(draw(ListedInterference(power_w=(1, 2, 3, 4, 5, 6))), [1, 2, 3, 4, 5, 6])
    drawn = draw(DrawnInterference(power_w=Uniform(low=0, high=0.8)))
    assert ((drawn >= 0) & (drawn < 0.8)).all()


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (DrawnInterference(power_w=Uniform(low=0.0, high=1.0)), None),
        (DrawnInterference(power_w=-1e-15), r"power_w must be >= 0, got -1e-15"),
        (DrawnInterference(power_w=Uniform(low=-1.0, high=1.0)), r"power_w must be >= 0, got -1\."),
        (NoiseRise(rise_db=Uniform(low=0.0, high=1000.0)), None),
        (NoiseRise(rise_db=Uniform(low=-0.1, high=3.0)), r"rise_db must lie in 0 to 1000, got -0\.1 to 3\."),
        (NoiseRise(rise_db=1000.1), r"rise_db must lie in 0 to 1000, got 1000\.1 to 1000\.1"),
        (ListedInterference(power_w=(0.1, 0.2)), None),
        (ListedInterference(power_w=(0.1,)), r"lists 1 blocks, but num_blocks is 2"),
        (EvenInterference(low_w=1.0, high_w=0.0), None),
        (NoInterference(), None),
    ],
)
def test_interference_is_a_power_for_every_block(config, message):
    if message is None:
        assert config.create("interference", num_blocks=2) is config
        rng = np.random.default_rng(0)
        assert (config.draw_w(num_blocks=2, noise_w=1.0, rng=rng) >= 0.0).all()
    else:
        with pytest.raises(ProblemError, match=message):
            config.create("interference", num_blocks=2)


def test_a_fleet_follows_its_distributions():
    config = FleetConfig(
        max_power_dbm=23.0,
        max_frequency_hz=Uniform(low=1e9, high=2e9),
        capacitance=2e-28,
        cycles_per_sample=Uniform(low=0, high=0.25),
    )
    fleet = draw_fleet(config, num_devices=20_000, seed=0)
    assert_allclose(fleet.max_power_w, 0.1995262315)
    assert fleet.max_frequency_hz.mean() == pytest.approx(1.5e9, rel=0.006)
    assert fleet.max_frequency_hz.min() >= 1e9
    assert fleet.cycles_per_sample.mean() == pytest.approx(0.125, rel=0.018)


def test_columns_of_the_fleet_are_drawn_independently():
    uniform = FleetConfig(
        max_power_w=Uniform(low=0, high=1),
        max_frequency_hz=Uniform(low=0, high=2),
        capacitance=Uniform(low=0, high=1),
        cycles_per_sample=Uniform(low=0, high=1),
    )
    before = draw_fleet(uniform, num_devices=50, seed=3)
    after = draw_fleet(uniform.model_copy(update={"max_power_w": 0.5}), num_devices=50, seed=3)
    assert (after.max_power_w == 0.5).all()
    assert (after.max_frequency_hz == before.max_frequency_hz).all()
    assert (after.cycles_per_sample == before.cycles_per_sample).all()
    assert abs(np.corrcoef(before.max_power_w, before.capacitance)[0, 1]) < 0.5
