"""Each kind of interference by hand; of neighbour cells also the mean, summed over a fine grid."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

from fedwave.errors import ProblemError
from fedwave.wireless.interference import (
    DrawnInterference,
    EvenInterference,
    HexagonalInterference,
    ListedInterference,
    NoInterference,
    NoiseRise,
    neighbour_sites_m,
    points_in_hexagon,
)
from fedwave.wireless.settings.distribution import Uniform
from fedwave.wireless.settings.load import load_cell

SETTINGS = {"site_distance_m": 500.0, "reference_loss_db": 34.0, "exponent": 3.53}


def inside(point, inner_radius):
    """Return whether points lie within all six edges of a hexagon with a corner on the x axis."""
    angle = np.pi / 6 + np.pi / 3 * np.arange(6)
    return (point @ np.stack([np.cos(angle), np.sin(angle)]) <= inner_radius * (1 + 1e-12)).all(axis=-1)


def test_six_sites_stand_around_ours_a_distance_apart():
    site = neighbour_sites_m(500.0)
    assert_allclose(np.hypot(*site.T), 500.0)
    assert_allclose(np.hypot(*(site - np.roll(site, 1, axis=0)).T), 500.0)


def test_devices_fill_their_hexagon_evenly():
    point = points_in_hexagon((40_000,), inner_radius_m=1.0, rng=np.random.default_rng(0))
    assert inside(point, 1.0).all()
    assert np.abs(point.mean(axis=0)).max() < 0.012  # four standard errors
    # The mean square distance from the centre of a hexagon of inner radius r is 5/9 r^2.
    assert (point**2).sum(axis=1).mean() == pytest.approx(5 / 9, rel=0.02)
    assert inside(point, 0.5).mean() == pytest.approx(0.25, abs=0.01)


def test_full_power_control_leaves_p0_times_the_ratio_of_distances():
    """With alpha = 1 and no limit a device is heard at P0 (d_own / d_ours)^n: here summed over a grid."""
    settings = HexagonalInterference(
        **SETTINGS, p0_dbm=-90.0, alpha=1.0, max_power_dbm=200.0, min_distance_m=1e-3
    )
    drawn = settings.draw_w(num_blocks=60_000, noise_w=1.0, rng=np.random.default_rng(1))
    axis = np.linspace(-300, 300, 1201)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    grid = grid[inside(grid, 250.0)]
    site = np.array([500 * math.cos(math.pi / 6), 250.0])
    ratio = np.hypot(*grid.T) / np.hypot(*(grid + site).T)
    assert drawn.mean() == pytest.approx(6 * 1e-12 * (ratio**3.53).mean(), rel=0.02, abs=0.0)


def test_a_device_sends_no_more_than_it_can():
    limited = HexagonalInterference(**SETTINGS, p0_dbm=200.0, max_power_dbm=23.0)
    other = HexagonalInterference(**SETTINGS, p0_dbm=300.0, alpha=0.5, max_power_dbm=33.0)
    first = limited.draw_w(num_blocks=50, noise_w=1.0, rng=np.random.default_rng(2))
    assert_allclose(other.draw_w(num_blocks=50, noise_w=1.0, rng=np.random.default_rng(2)), 10 * first)


def test_without_compensation_everybody_sends_p0():
    # alpha = 0: 10 dBm less of P0 is 10 dB less of interference, wherever the devices are.
    loud, soft = (
        HexagonalInterference(**SETTINGS, p0_dbm=p0, alpha=0.0).draw_w(
            num_blocks=9, noise_w=1.0, rng=np.random.default_rng(3)
        )
        for p0 in (10.0, 0.0)
    )
    assert_allclose(loud, 10 * soft)


def test_idle_neighbours_are_silent():
    quiet = HexagonalInterference(**SETTINGS, p0_dbm=-90.0, load=0.0)
    assert not quiet.draw_w(num_blocks=9, noise_w=1.0, rng=np.random.default_rng(4)).any()
    half, full = (
        HexagonalInterference(**SETTINGS, p0_dbm=-90.0, load=load)
        .draw_w(num_blocks=20_000, noise_w=1.0, rng=np.random.default_rng(5))
        .mean()
        for load in (0.5, 1.0)
    )
    assert half / full == pytest.approx(0.5, abs=0.03)


def test_a_cell_takes_them_as_its_interference():
    kind = {"kind": "hexagonal", **SETTINGS, "p0_dbm": -90.0, "alpha": 1.0, "shadowing_std_db": 7.82}
    cell = load_cell("umi-3.5ghz", num_devices=3, overrides={"interference": kind})
    first, second = cell.draw(0).interference_w, cell.draw(1).interference_w
    assert first.shape == (20,)
    assert (first > 0).all()
    assert not np.array_equal(first, second)


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


def test_a_point_of_the_hexagon_is_drawn_as_a_rhombus_and_two_shares_of_its_sides():
    """The order of draws is that of published numbers."""
    points = points_in_hexagon((4,), inner_radius_m=3.0, rng=np.random.default_rng(5))
    rng = np.random.default_rng(5)
    rhombus, shares = rng.integers(0, 3, 4), rng.random((2, 4))
    side_m = 2.0 * math.sqrt(3.0)  # the outer radius of an inner one of 3 m
    for k in range(4):
        first, second = 120.0 * rhombus[k], 120.0 * (rhombus[k] + 1)
        for axis, part in enumerate((math.cos, math.sin)):
            expected = side_m * (
                shares[0, k] * part(math.radians(first)) + shares[1, k] * part(math.radians(second))
            )
            assert points[k, axis] == pytest.approx(expected, rel=1e-12, abs=1e-12)
