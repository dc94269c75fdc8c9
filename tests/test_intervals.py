"""Means over seeds with intervals: against hand arithmetic and scipy, and as they are shown."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from fedwave.intervals import Interval, Ratio, interval, ratio_interval, short_number


def test_the_interval_is_students() -> None:
    got = interval([1.0, 2.0, 4.0])
    assert got.mean == pytest.approx(7 / 3)
    # t_{0.975, 2} = 4.30265, s = 1.527525
    assert got.half_width == pytest.approx(4.30265 * 1.527525 / 3**0.5, rel=1e-5)
    assert got.count == 3
    assert interval([1.0, math.nan, 2.0, math.inf, 4.0]) == got  # what was not measured does not count
    assert str(interval([2.0])) == "2"
    assert str(interval([])) == "-"
    assert str(interval([29_000.0, 31_000.0])) == "30,000 ± 12,706"
    assert str(interval([0.12345678])) == "0.1235"


@pytest.mark.parametrize(
    ("mean", "half_width", "shown"),
    [
        (71.6, 0.583, "71.60 ± 0.58"),
        (71.6, 5.83, "71.6 ± 5.8"),
        (2251.4, 911.3, "2,251 ± 911"),
        (0.02, 0.00012, "0.02000 ± 0.00012"),
        (-0.02, 3.1, "0.0 ± 3.1"),
        (-0.2, 3.1, "-0.2 ± 3.1"),
        (0.0, 0.0, "0 ± 0"),
        (20.0, 1e-15, "20 ± 0"),
        (0.0, 1.0, "0.0 ± 1.0"),
    ],
)
def test_a_mean_is_shown_as_far_as_its_interval_is(mean: float, half_width: float, shown: str) -> None:
    assert str(Interval(mean, half_width, 5)) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (9999.4, "9,999"),
        (999.94, "999.9"),
        (12345.6, "12,346"),
        (-20000.0, "-20,000"),
        (0.00012346, "0.0001235"),
        (0.0, "0"),
    ],
)
def test_a_number_is_short_and_without_exponent(value: float, shown: str) -> None:
    assert short_number(value) == shown


def test_ratios_are_averaged_by_their_logarithms() -> None:
    found = ratio_interval([2.0, 8.0, 4.0])
    logs = np.log([2.0, 8.0, 4.0])
    half = stats.t.ppf(0.975, 2) * stats.sem(logs)
    assert found.count == 3
    assert found.mean == pytest.approx(4.0)
    assert (found.low, found.high) == pytest.approx(tuple(np.exp(logs.mean() + half * np.array([-1, 1]))))


def test_a_ratio_is_shown_to_two_digits_with_its_interval() -> None:
    assert str(ratio_interval([])) == "-"
    assert str(ratio_interval([8.0])) == "8.0 ×"
    assert str(ratio_interval([1.0, 1.0])) == "1.0 × (1.0–1.0)"
    assert str(Ratio(123.4, 12.3, 1234.0, 5)) == "1.2e+02 × (12–1.2e+03)"
    assert str(Ratio(0.123, 0.05, 1.25, 5)) == "0.12 × (0.05–1.2)"
