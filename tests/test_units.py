"""Decibels by hand: 3 dB is nearly a doubling, 30 dBm is a watt, and back again."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fedwave.units import db_to_linear, dbm_to_watt, linear_to_db, watt_to_dbm


@pytest.mark.parametrize(
    ("db", "ratio"), [(0.0, 1.0), (10.0, 10.0), (-20.0, 0.01), (3.0, 1.9952623149688795)]
)
def test_decibels_are_ten_times_the_logarithm(db: float, ratio: float) -> None:
    assert db_to_linear(db) == pytest.approx(ratio, rel=1e-14)
    assert linear_to_db(ratio) == pytest.approx(db, abs=1e-14)


@pytest.mark.parametrize(("dbm", "watt"), [(30.0, 1.0), (0.0, 1e-3), (23.0, 0.19952623149688797)])
def test_dbm_count_from_a_milliwatt(dbm: float, watt: float) -> None:
    assert dbm_to_watt(dbm) == pytest.approx(watt, rel=1e-14)
    assert watt_to_dbm(watt) == pytest.approx(dbm, abs=1e-12)


def test_no_power_is_minus_infinity_and_arrays_stay_arrays() -> None:
    assert linear_to_db(0.0) == -math.inf
    assert type(linear_to_db(2.0)) is float
    np.testing.assert_allclose(watt_to_dbm(np.array([0.0, 1.0])), [-math.inf, 30.0])
