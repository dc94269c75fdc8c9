"""Tests and intervals of means against scipy, brute force and drawn numbers."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from fedwave.runs.inference import (
    LEVEL,
    holm,
    most_often,
    one_more,
    outcome_of,
    sign_flip,
    smaller_than,
    two_sided,
)

VALUES = [0.4, 1.9, -0.3, 2.2, 1.1, 0.7]


@pytest.mark.parametrize("threshold", [0.0, 0.5, 3.0])
def test_a_mean_above_or_below_is_a_two_sided_t_test_of_scipy(threshold: float) -> None:
    expected = stats.ttest_1samp(VALUES, threshold).pvalue
    above, below = (outcome_of(VALUES, side, threshold) for side in ("above", "below"))
    assert above.p_value == below.p_value == pytest.approx(expected, rel=1e-12)
    assert above.is_for == (np.mean(VALUES) > threshold) != below.is_for
    half = stats.t.interval(0.95, 5, loc=0.0, scale=stats.sem(VALUES))[1]
    assert (above.count, above.mean, above.half_width) == pytest.approx((6, 1.0, half))


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_within_a_margin_is_two_one_sided_tests_of_scipy(sign: float) -> None:
    values = [sign * value for value in VALUES]
    one_sided = [
        stats.ttest_1samp(values, -3.0, alternative="greater").pvalue,
        stats.ttest_1samp(values, 3.0, alternative="less").pvalue,
    ]
    inside = outcome_of(values, "within", 3.0)
    assert inside.is_for
    assert inside.p_value == pytest.approx(2.0 * max(one_sided), rel=1e-12)
    outside = outcome_of(values, "within", 0.5)
    assert not outside.is_for
    beyond = stats.ttest_1samp(values, sign * 0.5).pvalue
    assert outside.p_value == pytest.approx(beyond, rel=1e-12)


@pytest.mark.parametrize("interest", [0.5, 1.0, 1.5, 2.0, 5.0])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_an_effect_is_too_small_exactly_where_the_interval_of_the_mean_lies_inside(interest, sign) -> None:
    values = sign * np.array(VALUES)
    low, high = stats.t.interval(0.95, 5, loc=values.mean(), scale=stats.sem(values))
    found = outcome_of(values.tolist(), "above", 0.0, interest=interest)
    assert (found.p_small < LEVEL) == (-interest < low and high < interest)
    one_sided = [
        stats.ttest_1samp(values, -interest, alternative="greater").pvalue,
        stats.ttest_1samp(values, interest, alternative="less").pvalue,
    ]
    assert found.p_small == pytest.approx(min(1.0, 2.0 * max(one_sided)), rel=1e-12)
    assert outcome_of(VALUES, "above", 0.0).p_small == 1.0


def test_the_papers_size_is_tested_as_a_mean_and_as_one_more_run() -> None:
    found = outcome_of(VALUES, "above", 0.0, paper=3.0)
    assert found.p_size == pytest.approx(stats.ttest_1samp(VALUES, 3.0).pvalue, rel=1e-12)
    # One more value x differs from the mean of n by a t with n - 1 degrees, times s sqrt(1 + 1/n).
    scale = np.std(VALUES, ddof=1) * math.sqrt(1 + 1 / 6)
    assert found.p_run == pytest.approx(2 * stats.t.sf((3.0 - 1.0) / scale, 5), rel=1e-12)
    assert found.prediction == pytest.approx(stats.t.ppf(0.975, 5) * scale, rel=1e-12)
    assert (found.p_run < LEVEL) == (abs(3.0 - found.mean) > found.prediction)
    assert (outcome_of(VALUES, "above", 0.0).p_size, outcome_of(VALUES, "above", 0.0).p_run) == (1.0, 1.0)


def test_one_more_run_lies_in_its_interval_in_95_of_100_cases_and_in_that_of_the_mean_in_far_fewer() -> None:
    draws = np.random.default_rng(0).normal(3.0, 2.0, (4000, 11))
    seen, other = draws[:, :10], draws[:, 10]
    p_values = [one_more(own, one) for own, one in zip(seen, other, strict=True)]
    assert np.mean(np.array(p_values) > LEVEL) == pytest.approx(0.95, abs=0.01)
    half = stats.t.ppf(0.975, 9) * stats.sem(seen, axis=1)
    assert np.mean(np.abs(other - seen.mean(1)) < half) < 0.55


def test_one_seed_or_none_shows_nothing() -> None:
    for values in ([], [3.0], [3.0, math.nan]):
        found = outcome_of(values, "above", 0.0, paper=1.0, interest=9.0)
        assert (found.p_value, found.p_size, found.p_run, found.p_small) == (1.0, 1.0, 1.0, 1.0)
        assert not found.is_exact
        assert math.isnan(found.prediction)


@pytest.mark.parametrize(("value", "is_for"), [(2.0, True), (1.0, False), (0.0, False)])
def test_equal_values_are_exact_and_a_threshold_is_not_beyond_itself(value: float, is_for: bool) -> None:
    found = outcome_of([value] * 3, "above", 1.0, paper=2.0, interest=1.5)
    assert (found.is_exact, found.is_for, found.half_width, found.prediction) == (True, is_for, 0.0, 0.0)
    assert (found.p_size, found.p_run) == ((1.0, 1.0) if value == 2.0 else (0.0, 0.0))
    assert found.p_small == (1.0 if value == 2.0 else 0.0)


def test_rounding_alone_is_no_spread() -> None:
    assert outcome_of([0.1 + 0.2, 0.3, 0.3], "above", 0.0).is_exact
    assert not outcome_of([0.3 + 1e-9, 0.3, 0.3], "above", 0.0).is_exact


@pytest.mark.parametrize("count", [2, 5, 6, 13])
def test_the_sign_flip_test_tries_all_signs(count: int) -> None:
    values = np.random.default_rng(count).normal(0.5, 1.0, count)
    all_sums = [abs(np.dot(signs, values)) for signs in itertools.product((1, -1), repeat=count)]
    expected = np.mean([total >= abs(values.sum()) - 1e-12 for total in all_sums])
    assert sign_flip(values) == pytest.approx(expected)
    assert math.isnan(sign_flip(np.ones(21)))
    assert math.isnan(sign_flip([1.0]))


def test_sums_that_differ_by_rounding_are_equal_in_the_sign_flip_test() -> None:
    assert sign_flip([0.1, 0.5, 0.3, -0.9]) == 1.0  # their sum is zero but for rounding
    assert sign_flip([0.1] * 3) == 0.25  # all signs alike: two of eight


def test_holm_by_hand() -> None:
    # Sorted 0.005, 0.01, 0.03, 0.04 times 4, 3, 2, 1: 0.02, 0.03, 0.06, 0.04; the last not below 0.06.
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.7, 0.9]) == [1.0, 1.0]
    assert holm([]) == []


def test_what_was_never_seen_has_at_most_a_share_with_which_it_would_be_missed_in_one_of_twenty_cases() -> (
    None
):
    assert (1.0 - most_often(250)) ** 250 == pytest.approx(0.05)
    assert most_often(250) == pytest.approx(3 / 250, rel=0.01)  # the rule of three
    assert most_often(0) == 1.0


def test_tests_of_equal_values_compare() -> None:
    assert (two_sided(np.array([1.0, 1.0])), two_sided(np.zeros(2)), two_sided(np.ones(1))) == (0.0, 1.0, 1.0)
    assert (smaller_than(np.ones(2), 2.0), smaller_than(np.ones(2), 1.0)) == (0.0, 1.0)
    assert (smaller_than(np.ones(1), 9.0), one_more(np.ones(1), 9.0)) == (1.0, 1.0)
    assert (one_more(np.ones(2), 1.0), one_more(np.ones(2), 1.5)) == (1.0, 0.0)
