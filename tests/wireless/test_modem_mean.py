"""A modem's mean through fading against closed forms and drawn fading, and no plan promises more."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import special, stats

from fedwave.wireless.ergodic import ergodic_share
from fedwave.wireless.modem_mean import combined_fading, modem_mean, modem_shares, planned_rate
from fedwave.wireless.rate import RateModel

SHANNON = RateModel()
# The presets' three uplinks and the bare one.
MODEMS = [
    RateModel(efficiency=0.4, max_spectral_efficiency=2.93, min_snr=0.1),
    RateModel(efficiency=0.4, max_spectral_efficiency=2.0, min_snr=0.1),
    RateModel(efficiency=0.65, max_spectral_efficiency=6.3, min_snr=10**-0.6),
]
ANTENNAS = [1, 2, 4, 8]


def drawn_fading(k_factor: float, num_antennas: int, num_draws: int) -> np.ndarray:
    """Return sums of Rician branches over their mean, from normal numbers."""
    rng = np.random.default_rng(0)
    parts = rng.standard_normal((2, num_antennas, num_draws)) * math.sqrt(0.5 / (1 + k_factor))
    branches = (parts[0] + math.sqrt(k_factor / (1 + k_factor))) ** 2 + parts[1] ** 2
    return branches.mean(axis=0)


def reached(modem: RateModel, snr: np.ndarray, fading: np.ndarray) -> np.ndarray:
    """Return what the modem makes of each moment, written down again."""
    rate = np.minimum(modem.efficiency * np.log2(1 + snr * fading), modem.max_spectral_efficiency or math.inf)
    return np.where(snr * fading < modem.min_snr, 0.0, rate)


@pytest.mark.parametrize("num_antennas", [*ANTENNAS, 64])
def test_rayleigh_branches_have_the_closed_form_of_alouini_and_goldsmith(num_antennas):
    """E ln(1 + x G) = e^(1/x) (E_1(1/x) + ... + E_N(1/x)), x the mean SNR of a branch."""
    branch = 10 ** np.linspace(-2, 5, 15)
    exact = sum(special.expn(k, 1 / branch) for k in range(1, num_antennas + 1)) * np.exp(1 / branch)
    ours = modem_mean(num_antennas * branch, 0.0, SHANNON, num_antennas) * math.log(2)
    assert_allclose(ours, exact, rtol=2e-6)


@pytest.mark.parametrize("k_factor", [0.0, 0.01, 1.0, 10.0, 300.0])
@pytest.mark.parametrize("num_antennas", [*ANTENNAS, 64])
def test_the_fading_after_combining_is_noncentral_chi_square(num_antennas, k_factor):
    point, weight = combined_fading(k_factor, num_antennas)
    assert weight.sum() == pytest.approx(1.0)
    assert weight @ point == pytest.approx(1.0, abs=1e-6)
    variance = (1 + 2 * k_factor) / (1 + k_factor) ** 2 / num_antennas
    assert weight @ (point - 1) ** 2 == pytest.approx(variance, rel=1e-4)
    edge = point * math.sqrt(point[1] / point[0])
    scale, noncentrality = 2 * num_antennas * (1 + k_factor), 2 * num_antennas * k_factor
    exact = (
        stats.ncx2.cdf(scale * edge, 2 * num_antennas, noncentrality)
        if k_factor
        else stats.chi2.cdf(scale * edge, 2 * num_antennas)
    )
    assert_allclose(np.cumsum(weight), exact, atol=6e-4)


@pytest.mark.parametrize("k_factor", [0.0, 2.0, 30.0])
@pytest.mark.parametrize("num_antennas", ANTENNAS)
@pytest.mark.parametrize("modem", MODEMS)
def test_the_mean_is_that_of_drawn_moments(modem, num_antennas, k_factor):
    fading = drawn_fading(k_factor, num_antennas, 200_000)
    snr = 10 ** np.array([-1.2, -0.8, -0.3, 0.5, 1.5, 2.2, 3.0])
    ours = modem_mean(snr, k_factor, modem, num_antennas)
    for x, mean in zip(snr, ours, strict=True):
        moments = reached(modem, x, fading)
        error = 4.5 * moments.std() / math.sqrt(moments.size)
        assert mean == pytest.approx(moments.mean(), abs=error + 2e-4)


@pytest.mark.parametrize("num_antennas", ANTENNAS)
@pytest.mark.parametrize("modem", MODEMS)
def test_no_power_is_promised_more_than_the_modem_reaches(modem, num_antennas):
    """The page's inequality: at every power up to the maximum, for the mean over drawn fading."""
    shares, plan = modem_shares(modem, num_antennas), planned_rate(modem)
    for k_factor in (0.0, 0.7, 8.0, 200.0):
        fading = drawn_fading(k_factor, num_antennas, 40_000)
        for full_db in (-8.0, -6.0, -3.0, 2.0, 9.0, 16.0, 21.5, 25.0, 30.0, 36.0, 60.0):
            share = shares.up_to_power(np.array([10 ** (full_db / 10)]), np.array([k_factor]))[0]
            powers_db = np.append(
                np.arange(full_db, -12.0, -1.7), 10 * math.log10(1.0001 * plan.min_snr / share)
            )
            for snr in 10 ** (powers_db[powers_db <= full_db] / 10):
                promised = plan.spectral_efficiency(np.array([share * snr]))[0]
                moments = reached(modem, snr, fading)
                error = 4.5 * moments.std() / math.sqrt(moments.size)
                assert promised <= moments.mean() + error


@given(
    k_factor=st.floats(0.0, 1e4),
    full_db=st.floats(-30.0, 75.0),
    part_db=st.floats(0.0, 60.0),
    efficiency=st.floats(0.2, 1.0),
    cap=st.floats(1.0, 8.0),
    floor_db=st.floats(-12.0, -4.0),
    num_antennas=st.sampled_from([1, 2, 3, 8]),
)
def test_any_modem_is_promised_no_more_than_it_reaches(
    k_factor, full_db, part_db, efficiency, cap, floor_db, num_antennas
):
    modem = RateModel(efficiency=efficiency, max_spectral_efficiency=cap, min_snr=10 ** (floor_db / 10))
    share = modem_shares(modem, num_antennas).up_to_power(
        np.array([10 ** (full_db / 10)]), np.array([k_factor])
    )
    snr = np.array([10 ** ((full_db - part_db) / 10)])
    promised = planned_rate(modem).spectral_efficiency(share * snr)[0]
    # A steadier channel than 25 dB reaches at least as much as one of 25 dB.
    mean = modem_mean(snr, min(k_factor, 10**2.5), modem, num_antennas)[0]
    assert promised <= mean + 1e-9


@pytest.mark.parametrize("num_antennas", ANTENNAS)
@pytest.mark.parametrize("modem", MODEMS)
def test_full_power_below_the_cap_is_promised_what_it_reaches(modem, num_antennas):
    """Not only never more: to 1 % as much, where the floor is far and the cap not reached."""
    for full_db in (5.0, 10.0, 15.0):
        snr = np.array([10 ** (full_db / 10)])
        mean = modem_mean(snr, 0.0, modem, num_antennas)[0]
        if mean > 0.97 * modem.max_spectral_efficiency:
            continue
        share = modem_shares(modem, num_antennas).up_to_power(snr, np.zeros(1))[0]
        promised = planned_rate(modem).spectral_efficiency(share * snr)[0]
        assert 0.99 * mean <= promised <= mean


def test_without_cap_floor_and_combining_it_is_the_ergodic_share():
    snr = 10 ** np.linspace(-3, 6, 40)
    for k_factor in (0.0, 1.0, 8.0, 100.0):
        ours = modem_shares(SHANNON, 1).at_power(snr, np.full(40, k_factor))
        # 0.02 dB of the older rule of 24 points, 0.01 dB of the tables.
        assert_allclose(
            10 * np.log10(ours), 10 * np.log10(ergodic_share(snr, np.array([k_factor]))), atol=0.03
        )


def test_a_plan_counts_on_less_than_the_cap_and_a_higher_floor():
    plan = planned_rate(MODEMS[0])
    assert plan.max_spectral_efficiency == pytest.approx(0.98 * 2.93)
    assert 10 * math.log10(plan.min_snr) == pytest.approx(-7.0)
    assert planned_rate(SHANNON) == SHANNON


def test_the_share_falls_with_the_snr_also_under_a_cap():
    """ln(1 + x2 g) capped is a concave function of ln(1 + x1 g) capped: docs/cell.md, "Fading"."""
    capped = RateModel(efficiency=0.4, max_spectral_efficiency=2.93)
    snr = 10 ** np.linspace(-3, 6, 200)
    for num_antennas in ANTENNAS:
        for k_factor in (0.0, 3.0):
            mean = modem_mean(snr, k_factor, capped, num_antennas)
            share = np.expm1(mean * math.log(2) / 0.4) / snr
            assert (np.diff(share) <= 1e-6).all()
