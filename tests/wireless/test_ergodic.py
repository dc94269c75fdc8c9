"""Ergodic rates against closed forms and against averages over drawn fading."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import special

from fedwave.wireless.ergodic import ergodic_share, mean_log
from fedwave.wireless.settings.load import load_cell

GAUSS = 4e-3  # nats: 24 points, worst near K = 0 dB at 70 dB of SNR; 0.02 dB


def test_rayleigh_has_the_textbooks_rate():
    snr = 10 ** np.linspace(-2, 7, 19)
    exact = special.exp1(1 / snr) * np.exp(1 / snr)
    assert_allclose(mean_log(snr, np.zeros(1)), exact, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("k_factor", [0.3, 1.0, 8.0, 300.0])
@pytest.mark.parametrize("snr", [0.1, 10.0, 1e5])
def test_rician_is_the_average_over_drawn_fading(k_factor, snr):
    rng = np.random.default_rng(0)
    parts = rng.standard_normal((2, 400_000)) * math.sqrt(0.5 / (1 + k_factor))
    power = (parts[0] + math.sqrt(k_factor / (1 + k_factor))) ** 2 + parts[1] ** 2
    drawn = np.log1p(snr * power)
    error = 4 * drawn.std() / math.sqrt(drawn.size)
    assert mean_log(np.array([snr]), np.array([k_factor]))[0] == pytest.approx(
        drawn.mean(), abs=error + GAUSS
    )


def test_the_share_falls_from_one_to_the_mean_of_the_logarithm():
    snr = 10 ** np.linspace(-8.9, 8, 120)
    for k_factor in (0.0, 1.0, 10.0):
        share = ergodic_share(snr, np.array([k_factor]))
        assert share[0] == pytest.approx(1.0, abs=1e-4)
        assert (np.diff(share) < 2e-3).all()
        assert (share <= 1.0).all()
    assert ergodic_share(np.array([1e8]), np.zeros(1))[0] == pytest.approx(
        math.exp(-np.euler_gamma), rel=1e-4
    )
    # Rician at high SNR: E ln g = ln(K / (1 + K)) + E1(K)
    for k_factor in (1.0, 8.0):
        steady = math.log(k_factor / (1 + k_factor)) + special.exp1(k_factor)
        share = ergodic_share(np.array([1e8]), np.array([k_factor]))[0]
        assert math.log(share) == pytest.approx(steady, abs=GAUSS)
    assert ergodic_share(np.zeros(1), np.zeros(1))[0] == 1.0


def test_the_gain_of_full_power_promises_no_more_at_less_power():
    full = 1000.0
    share = ergodic_share(np.array([full]), np.zeros(1))[0]
    for part in (1e-3, 0.01, 0.1, 0.5):
        promised = np.log1p(part * full * share)
        reached = mean_log(np.array([part * full]), np.zeros(1))[0]
        assert promised <= reached
        # By no more than the 2.5 dB between the shares' ends.
        assert reached <= np.log1p(part * full)


def test_a_cells_rate_at_full_power_is_the_average_over_its_snapshots():
    """Blocked devices, blocks narrow enough to be flat: the rate is the mean over many drawn rounds."""
    sight = {"line_of_sight": "never", "fading": {"kind": "delay-line", "ergodic": True}}
    lasting = load_cell("rma-700mhz-bare", num_devices=6, overrides={"redraw": "static", "channel": sight})
    snapshot = {**sight, "fading": {"kind": "delay-line", "ergodic": False}}
    moment = load_cell("rma-700mhz-bare", num_devices=6, overrides={"channel": snapshot})
    draw = lasting.draw(0)
    noise_w = draw.interference_w + lasting.noise_w
    power_w = lasting.fleet.max_power_w[:, None]
    drawn = np.mean(
        [np.log1p(power_w * moment.draw(k).channel_gain / noise_w) for k in range(1200)], axis=0
    ).mean(axis=1)
    ours = np.log1p(power_w * draw.channel_gain / noise_w).mean(axis=1)
    # Four standard errors of 1200 rounds: ln g has a deviation of pi / sqrt(6) = 1.28.
    assert_allclose(ours, drawn, atol=4 * 1.28 / math.sqrt(1200))
