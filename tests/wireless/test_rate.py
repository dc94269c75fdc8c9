"""What a modem makes of an SINR and a radio of its power: numbers by hand, nothing extra by default."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from numpy.testing import assert_allclose

from fedwave.errors import ProblemError
from fedwave.wireless.link import uplink_rate_bps, upload_energy_j
from fedwave.wireless.rate import RadioPower, RateModel
from fedwave.wireless.settings.config import RadioConfig, RateConfig


def rate_at(snr, model):
    return uplink_rate_bps(
        np.asarray(snr, dtype=float),
        np.ones(len(snr)),
        interference_w=np.zeros(len(snr)),
        bandwidth_hz=10.0,
        noise_psd_w_per_hz=0.1,
        rate_model=model,
    )


def test_a_modem_reaches_a_share_of_shannon_up_to_its_cap_and_nothing_below_its_floor():
    model = RateConfig(efficiency=0.5, max_spectral_efficiency=1.5, min_sinr_db=-10.0).model
    # SNR 3, 7, 15: 2, 3, 4 bit/s/Hz of Shannon; half of it is 1, 1.5, and 2 cut to 1.5. 0.09 is below -10 dB.
    assert_allclose(rate_at([3, 7, 15, 0.09], model), [10, 15, 15, 0])
    assert rate_at([0.1], model)[0] > 0


def test_the_default_is_shannons_rate_to_the_last_bit():
    snr = np.random.default_rng(0).uniform(0, 50, 100)
    assert np.array_equal(rate_at(snr, RateConfig().model), 10.0 * np.log1p(snr / 1.0) / np.log(2.0))


def test_sending_drains_the_amplifier_and_the_circuit():
    radio = RadioConfig(amplifier_efficiency=0.25, circuit_power_w=0.5).power
    assert_allclose(upload_energy_j(np.array([1.0]), np.array([2.0]), radio=radio), [9.0])  # (4 + 0.5) * 2
    assert upload_energy_j(np.array([1.0]), np.array([2.0]))[0] == 2.0


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"efficiency": 0.0}, "efficiency must lie in 0 to 1, got 0"),
        ({"efficiency": 1.01}, "efficiency must lie in 0 to 1, got 1.01"),
        ({"max_spectral_efficiency": 0.0}, "max_spectral_efficiency must be > 0, got 0"),
        ({"max_spectral_efficiency": math.inf}, "max_spectral_efficiency must be > 0, got inf"),
        ({"min_snr": -0.1}, "min_snr must be >= 0, got -0.1"),
        ({"min_snr": math.inf}, "min_snr must be >= 0, got inf"),
        ({"max_spectral_efficiency": 1.0, "min_snr": 1.0}, "min_snr = 1 must lie below 1"),
    ],
)
def test_a_rate_that_no_modem_has_is_refused(settings, message):
    with pytest.raises(ProblemError, match=message):
        RateModel(**settings)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"amplifier_efficiency": 0.0}, "amplifier_efficiency must lie in 0 to 1, got 0"),
        ({"amplifier_efficiency": 1.01}, "amplifier_efficiency must lie in 0 to 1, got 1.01"),
        ({"circuit_power_w": -1.0}, "circuit_power_w must be >= 0, got -1"),
        ({"circuit_power_w": math.inf}, "circuit_power_w must be >= 0, got inf"),
    ],
)
def test_a_radio_that_cannot_be_is_refused(settings, message):
    with pytest.raises(ProblemError, match=message):
        RadioPower(**settings)


@pytest.mark.parametrize("bits", [1e-20, 1e-17, 1e-12, 1e-6, 9.99e-3, 1.01e-2, 0.5, 4.0])
def test_the_snr_of_a_cap_is_exact_however_small(bits):
    exact = mpmath.expm1(mpmath.mpf(bits) / mpmath.mpf(0.5) * mpmath.log(2))
    found = RateModel(efficiency=0.5, max_spectral_efficiency=bits).max_snr
    assert found == pytest.approx(float(exact), rel=1e-13)
