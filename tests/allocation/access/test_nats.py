"""Energy and saving of an upload as functions of its nats per hertz second, and their inverses."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from numpy.testing import assert_allclose

from fedwave.allocation.access.nats import MOST_NATS, energy, nats_of_energy, nats_of_saving, saving
from fedwave.allocation.uploads.power import optimal_snrs, snr_of_energy_factor, steepness

NATS = np.exp(np.linspace(math.log(1e-10), math.log(600.0), 3001))


def test_saving_is_lemma_6_to_the_last_digits() -> None:
    assert_allclose(saving(NATS), [steepness(float(v)) for v in NATS], rtol=1e-12)


def test_saving_is_what_energy_falls_by_as_the_area_grows() -> None:
    nats = np.array([0.05, 0.4, 1.0, 3.0, 8.0])
    area, step = 1.0 / nats, 1e-6
    slope = (energy(1.0 / (area * (1 + step))) - energy(1.0 / (area * (1 - step)))) / (2 * step * area)
    assert_allclose(-slope, saving(nats), rtol=1e-7)


def test_small_nats_keep_their_digits() -> None:
    # m(v) = sum (k - 1) v^k / k!, in exact arithmetic
    for v in (Fraction(1, 100), Fraction(29, 1000), Fraction(31, 1000)):
        exact = sum(Fraction(k - 1, math.factorial(k)) * v**k for k in range(2, 20))
        assert_allclose(saving(np.array([float(v)])), float(exact), rtol=3e-13)


def test_both_inverses_give_back_the_nats() -> None:
    assert_allclose(nats_of_saving(saving(NATS)), NATS, rtol=1e-10)
    large = NATS[NATS > 0.01]
    assert_allclose(nats_of_energy(energy(large)), large, rtol=1e-12)


def test_the_inverses_agree_with_those_of_one_block() -> None:
    values = np.geomspace(1e-3, 1e6, 200)
    assert_allclose(nats_of_saving(values), np.log1p(optimal_snrs(values)), rtol=1e-9)
    assert_allclose(nats_of_energy(1.0 + values), np.log1p(snr_of_energy_factor(1.0 + values)), rtol=1e-10)


def test_out_of_range_is_cut() -> None:
    assert nats_of_energy(np.array([0.5, 1.0])).tolist() == [0.0, 0.0]
    assert nats_of_energy(np.array([1e299]))[0] <= MOST_NATS
    assert nats_of_saving(np.array([0.0]))[0] < 1e-13
    assert nats_of_saving(np.array([np.inf]))[0] == pytest.approx(MOST_NATS)
