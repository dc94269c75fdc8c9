"""Decibels by hand: 3 dB is nearly a doubling, 30 dBm is a watt, and back again."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fedwave.errors import ProblemError
from fedwave.units import (
    carbon_g,
    db_to_linear,
    dbm_to_watt,
    linear_to_db,
    other_units,
    real_array,
    watt_to_dbm,
)


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


def test_other_units_of_a_quantity_are_known_by_the_end_of_its_name() -> None:
    given = {
        "max_power_w": {"max_power_dbm": (30.0, 1.0), "max_power_mw": (250.0, 0.25)},
        "noise_psd_w_per_hz": {"noise_psd_dbm_per_hz": (-170.0, 1e-20)},
        "channel_gain": {"channel_gain_db": (-90.0, 1e-9)},
        "channel_gain_12": {"channel_gain_12_db": (-80.0, 1e-8)},
        "rate_min_snr": {"rate_min_snr_db": (20.0, 100.0)},
        "capacitance": {},
        "max_energy_j": {},
    }
    for name, others in given.items():
        found = other_units(name)
        assert list(found) == list(others)
        for other, (value, in_si) in others.items():
            assert found[other](np.array([value]))[0] == pytest.approx(in_si, rel=1e-12)


def test_no_power_is_minus_infinity_and_arrays_stay_arrays() -> None:
    assert linear_to_db(0.0) == -math.inf
    assert type(linear_to_db(2.0)) is float
    np.testing.assert_allclose(watt_to_dbm(np.array([0.0, 1.0])), [-math.inf, 30.0])


@pytest.mark.parametrize("values", [[1, 2], [0.5, 2.0], np.array([1, 2], dtype=np.uint8), 3, np.float32(0.5)])
def test_real_numbers_of_any_size_become_float64(values):
    array = real_array(values, "gain")
    assert array.dtype == np.float64
    assert array.tolist() == np.asarray(values).tolist()


def test_an_array_of_float64_is_not_copied():
    values = np.array([1.0, 2.0])
    assert real_array(values, "gain") is values


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([1 + 2j, 1.0], r"gain must hold real numbers, got complex128. The power of a complex h is abs\(h\)"),
        (np.zeros(2, np.complex64), "gain must hold real numbers, got complex64"),
        ([True, False], r"gain must hold numbers only, got \[True, False\] \(bool\)"),
        (["1", "2"], r"gain must hold numbers only, got \['1', '2'\]"),
        (
            [None, 1.0],
            r"gain must hold numbers only, got \[None, 1.0\] \(object\). Use numpy arrays of floats",
        ),
        (np.array([1.0, 2.0], dtype=object), r"gain must hold numbers only, got array.* \(object\)"),
        (np.array(["2026-01-01"], dtype="datetime64[D]"), "gain must hold numbers only, got array"),
        ([[1.0], [1.0, 2.0]], r"gain must hold numbers only, got \[\[1.0\], \[1.0, 2.0\]\]"),
        ([10**400], r"gain must hold numbers only, got \[1000"),
    ],
)
def test_what_is_no_real_number_is_refused_in_one_line(values, message):
    with pytest.raises(ProblemError, match=message) as caught:
        real_array(values, "gain")
    assert "\n" not in str(caught.value)


@pytest.mark.skipif(np.finfo(np.longdouble).max <= np.finfo(np.float64).max, reason="no wider float here")
def test_what_float64_cannot_hold_is_infinite_without_a_warning():
    assert real_array(np.array([np.longdouble("1e400")]), "gain").tolist() == [math.inf]


def test_a_kilowatt_hour_is_3_6_megajoules() -> None:
    assert carbon_g(3.6e6, 381.0) == pytest.approx(381.0)
    assert carbon_g(1800.0, 400.0) == pytest.approx(0.2)
