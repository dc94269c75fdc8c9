"""Means over seeds with intervals: against hand arithmetic and scipy, and as they are shown."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from fedwave.intervals import (
    Interval,
    Median,
    Ratio,
    interval,
    median_interval,
    ratio_interval,
    short_number,
)


def test_the_interval_is_students() -> None:
    got = interval([1.0, 2.0, 4.0])
    assert got.mean == pytest.approx(7 / 3)
    # t_{0.975, 2} = 4.30265, s = 1.527525
    assert got.half_width == pytest.approx(4.30265 * 1.527525 / 3**0.5, rel=1e-5)
    assert got.count == 3
    assert got.prediction == pytest.approx(4.30265 * 1.527525 * (1 + 1 / 3) ** 0.5, rel=1e-5)
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
    assert str(Ratio(123.4, 12.3, 1234.0, 5)) == "123 × (12–1,234)"
    assert str(Ratio(0.123, 0.05, 1.25, 5)) == "0.12 × (0.05–1.2)"
    assert str(Ratio(0.9996, 0.9949, 1.0, 5)) == "1.0 × (0.99–1.0)"


@pytest.mark.parametrize(
    ("count", "rank"),  # of Conover's and many other tables of the sign test: 95 % at least
    [(6, 1), (8, 1), (9, 2), (10, 2), (12, 3), (20, 6), (100, 40)],
)
def test_the_median_lies_between_the_order_statistics_of_the_sign_test(count: int, rank: int) -> None:
    values = np.random.default_rng(count).permutation(count) + 1.0
    got = median_interval([*values, math.nan, math.inf])
    assert (got.low, got.high, got.count) == (rank, count + 1 - rank, count)
    assert got.median == (count + 1) / 2
    assert 2 * stats.binom.cdf(rank - 1, count, 0.5) <= 0.05 < 2 * stats.binom.cdf(rank, count, 0.5)


def test_of_few_values_it_is_their_range_and_of_none_nothing() -> None:
    assert median_interval([3.0, 1.0, 2.0, 9.0, 4.0]) == Median(3.0, 1.0, 9.0, 5)
    assert median_interval([2.0]) == Median(2.0, 2.0, 2.0, 1)
    assert math.isnan(median_interval([math.nan]).median)
    assert median_interval([]).count == 0


def test_95_of_100_intervals_of_a_heavy_tailed_median_hold_it() -> None:
    draws = 1.0 / np.random.default_rng(0).uniform(size=(4000, 10))  # no mean; the median is 2
    held = sum(one.low <= 2.0 <= one.high for one in map(median_interval, draws))
    assert held / 4000 == pytest.approx(1 - 2 * 11 / 1024, abs=4.5 * math.sqrt(0.021 * 0.979 / 4000))


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        ([2.0], "2"),
        ([], "-"),
        ([206.4, 189.0, 1240.2], "206 (189–1,240)"),
        ([0.8512, 0.6, 1.5], "0.851 (0.6–1.5)"),
        ([12.344, 10.0, 99.96], "12.3 (10–100)"),
    ],
)
def test_a_median_is_shown_with_its_interval(values: list[float], shown: str) -> None:
    assert str(median_interval(values)) == shown
