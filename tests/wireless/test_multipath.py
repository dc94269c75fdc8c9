"""Fading of the 3GPP cells against Sionna 2.2, against Bessel's function, and against arithmetic by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import special

from fedwave.errors import ConfigError
from fedwave.wireless.multipath import (
    MovingRays,
    Multipath,
    coherence_time_s,
    draw_multipath,
    independent_echoes,
    max_doppler_hz,
    multipath_table,
)
from fedwave.wireless.settings.load import load_cell, load_cell_config

CARRIER_HZ = {"umi": 3.5e9, "uma": 2e9, "rma": 0.7e9}
BLOCK_HZ = {"umi": 360e3, "uma": 180e3, "rma": 180e3}  # as in the presets
# Sionna 2.2's TR 38.901, in sight and blocked: variance of power over time (in sight alone), correlation of
# neighbouring blocks and of blocks five apart, dB of the best of 20 blocks over their mean.
SIONNA = {
    ("umi", True): (0.25, 0.92, 0.54, 1.7),
    ("umi", False): (None, 0.93, 0.53, 3.3),
    ("uma", True): (0.23, 0.89, 0.54, 1.6),
    ("uma", False): (None, 0.87, 0.44, 3.6),
    ("rma", True): (0.35, 0.97, 0.82, 1.3),
    ("rma", False): (None, 0.99, 0.88, 1.7),
}


def echoes_of(scenario, in_sight, num_devices, seed=0):
    rng = np.random.default_rng(seed)
    return draw_multipath(
        scenario,
        carrier_frequency_hz=CARRIER_HZ[scenario],
        is_line_of_sight=np.full(num_devices, in_sight),
        gain_normal=rng.standard_normal(num_devices),
        rng=rng,
    )


@pytest.mark.parametrize(("scenario", "in_sight"), SIONNA)
def test_blocks_fade_as_sionnas_do(scenario, in_sight):
    multipath = echoes_of(scenario, in_sight, 400)
    rng = np.random.default_rng(1)
    gain = np.stack(
        [
            multipath.block_gain(
                *independent_echoes(multipath, rng=rng), num_blocks=20, bandwidth_hz=BLOCK_HZ[scenario]
            )
            for _ in range(20)
        ],
        axis=1,
    )  # device, round, block

    def correlation(apart):
        pairs = zip(gain[..., :-apart].T, gain[..., apart:].T, strict=True)
        return np.mean([np.corrcoef(a.ravel(), b.ravel())[0, 1] for a, b in pairs])

    variance, next_one, fifth, best_db = SIONNA[scenario, in_sight]
    assert gain.mean() == pytest.approx(1.0, abs=0.02)
    if variance is not None:
        assert gain.var(axis=1).mean() / (1 - 1 / 20) == pytest.approx(variance, abs=0.04)
    assert correlation(1) == pytest.approx(next_one, abs=0.025)
    assert correlation(5) == pytest.approx(fifth, abs=0.06)
    assert np.mean(10 * np.log10(gain.max(-1) / gain.mean(-1))) == pytest.approx(best_db, abs=0.15)


def test_powers_of_the_paths_add_up_to_the_whole():
    multipath = echoes_of("umi", True, 50)
    steady = multipath.k_factor / (1 + multipath.k_factor)
    assert_allclose(multipath.power.sum(axis=1) + steady, 1.0)
    assert (multipath.delay_s >= 0).all()
    assert not echoes_of("umi", False, 5).k_factor.any()


@pytest.mark.parametrize(("scenario", "mean_db", "std_db"), [("umi", 9, 5), ("uma", 9, 3.5), ("rma", 7, 4)])
def test_k_factors_are_those_of_the_table(scenario, mean_db, std_db):
    k_db = 10 * np.log10(echoes_of(scenario, True, 4000).k_factor)
    assert k_db.mean() == pytest.approx(mean_db, abs=4 * std_db / math.sqrt(4000))
    assert k_db.std() == pytest.approx(std_db, rel=0.05)


def test_delay_spreads_are_those_of_the_table():
    # UMi blocked at 3.5 GHz: lg DS = -6.87 - 0.22 lg 4.5 = -7.0137, i.e. 97 ns; UMa below 6 GHz uses 6 GHz.
    table = multipath_table("umi", carrier_frequency_hz=3.5e9, in_sight=False)
    assert table.lg_delay_spread == pytest.approx(-7.0137, abs=1e-4)
    assert table.lg_delay_spread_std == pytest.approx(0.22 + 0.19 * math.log10(4.5))
    assert multipath_table("umi", carrier_frequency_hz=1e9, in_sight=True) == multipath_table(
        "umi", carrier_frequency_hz=2e9, in_sight=True
    )
    assert multipath_table("uma", carrier_frequency_hz=2e9, in_sight=False) == multipath_table(
        "uma", carrier_frequency_hz=6e9, in_sight=False
    )
    multipath = echoes_of("uma", False, 1500)
    mean_s = (multipath.power * multipath.delay_s).sum(axis=1)
    spread_s = np.sqrt((multipath.power * (multipath.delay_s - mean_s[:, None]) ** 2).sum(axis=1))
    # The mean over clusters scatters around DS; the median is right to some 10 %.
    assert np.median(np.log10(spread_s)) == pytest.approx(-6.47 - 0.134 * math.log10(6), abs=0.06)


@pytest.mark.parametrize("in_sight", [True, False])
def test_loud_devices_have_short_echoes_and_a_strong_steady_path(in_sight):
    rng = np.random.default_rng(0)
    loud = rng.standard_normal(4000)
    multipath = draw_multipath(
        "umi",
        carrier_frequency_hz=3.5e9,
        is_line_of_sight=np.full(4000, in_sight),
        gain_normal=loud,
        rng=rng,
    )
    # Table 7.5-6: lg DS against shadow fading is -0.4 in sight and -0.7 blocked; clusters blur it a little.
    mean_delay = np.log10(multipath.delay_s[:, :12].mean(axis=1))
    expected = -0.4 if in_sight else -0.7
    if in_sight:  # Eq. (7.5-3) stretches delays by K, which goes with the gain as well
        k_db = 10 * np.log10(multipath.k_factor)
        mean_delay += np.log10(0.7705 - 0.0433 * k_db + 0.0002 * k_db**2 + 0.000017 * k_db**3)
        assert np.corrcoef(loud, k_db)[0, 1] == pytest.approx(0.5, abs=0.05)
        assert np.corrcoef(mean_delay, k_db)[0, 1] == pytest.approx(-0.7, abs=0.1)
    assert np.corrcoef(loud, mean_delay)[0, 1] == pytest.approx(expected, abs=0.1)


def test_two_paths_interfere_as_a_hand_works_out():
    # A steady path and an echo of equal power half a microsecond later: |1 + e^(-j pi f / MHz)|^2 / 2.
    multipath = Multipath(k_factor=np.array([1.0]), delay_s=np.array([[0.5e-6]]), power=np.array([[0.5]]))
    one = np.ones((1, 1), dtype=complex)
    gain = multipath.block_gain(one, one[0], num_blocks=4, bandwidth_hz=0.5e6)[0]
    frequency_mhz = (np.arange(12).reshape(4, 3) + 0.5) * 0.5 / 3
    assert_allclose(gain, (1 + np.cos(np.pi * frequency_mhz)).mean(axis=1))


def test_moving_rays_correlate_as_bessels_function():
    multipath = echoes_of("umi", False, 3000)
    doppler_hz = max_doppler_hz(speed_m_per_s=3 / 3.6, carrier_frequency_hz=3.5e9)
    assert doppler_hz == pytest.approx(9.722, abs=1e-3)
    assert coherence_time_s(doppler_hz) == pytest.approx(0.0435, abs=1e-4)
    assert coherence_time_s(0.0) == math.inf
    rays = MovingRays.draw(multipath, max_doppler_hz=doppler_hz, rng=np.random.default_rng(2))
    start, steady = rays.echoes(0.0)
    assert (np.abs(start) ** 2).mean() == pytest.approx(1.0, abs=0.02)
    assert_allclose(np.abs(steady), 1.0)
    for time_s in (0.01, 0.0435, 0.1):
        later, _ = rays.echoes(time_s)
        correlation = (later * start.conj()).mean()
        assert correlation.real == pytest.approx(special.j0(2 * np.pi * doppler_hz * time_s), abs=0.015)
        assert correlation.imag == pytest.approx(0.0, abs=0.015)


def snapshots(num_rounds=2, **fading):
    options = {"kind": "delay-line", "ergodic": False, **fading}
    cell = load_cell("umi-3.5ghz", num_devices=300, overrides={"channel": {"fading": options}})
    gain = np.stack([cell.draw(k).channel_gain / cell.large_scale.gain[:, None] for k in range(num_rounds)])
    return cell, gain


def test_rounds_close_in_time_are_alike_and_far_ones_are_not():
    _, alike = snapshots(round_interval_s=0.001)
    _, apart = snapshots(round_interval_s=60.0)
    _, fresh = snapshots()
    assert np.corrcoef(alike.reshape(2, -1))[0, 1] > 0.98
    for gain in (apart, fresh):
        # What stays is what the K-factors and echoes of a device make of its mean.
        assert abs(np.corrcoef((gain - 1.0).reshape(2, -1))[0, 1]) < 0.15


def test_a_round_depends_on_its_number_alone():
    cell, gain = snapshots(num_rounds=4, round_interval_s=2.0)
    assert np.array_equal(cell.draw(3).channel_gain / cell.large_scale.gain[:, None], gain[3])
    again, _ = snapshots(num_rounds=1, round_interval_s=2.0)
    assert np.array_equal(again.draw(3).channel_gain, cell.draw(3).channel_gain)


def test_a_channel_without_tables_has_no_delay_line():
    with pytest.raises(ConfigError, match='fading.kind "delay-line" needs the tables of channel kind "3gpp"'):
        load_cell_config("fedl2021", {"channel": {"fading": {"kind": "delay-line"}}})
