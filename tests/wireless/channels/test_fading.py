"""Fading against its theory.

Tolerances are about four standard errors at the sample size used; seeds are fixed.
"""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from fedwave.wireless.channels.fading import rayleigh_power, rician_power


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
