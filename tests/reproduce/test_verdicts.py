"""Tests of means against scipy and brute force; verdicts from tables that are made up."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from fedwave.reproduce.claims import CLAIMS
from fedwave.reproduce.seed_tables import Tables, read_rows, write_rows
from fedwave.reproduce.verdicts import (
    LEVEL,
    POWER,
    claim_rows,
    decide,
    holm,
    judge,
    outcome_of,
    seeds_needed,
    sign_flip,
    verdict_of,
)
from tests.reproduce.made_up_rows import cell_rows, table_2


@pytest.mark.parametrize(
    ("decisions", "verdict"),
    [
        ([], "not run"),
        (["holds", "holds"], "holds"),
        (["holds", "undecided"], "holds in part"),
        (["holds", "does not hold"], "holds in part"),
        (["does not hold", "undecided"], "does not hold"),
        (["undecided"], "undecided"),
    ],
)
def test_a_claim_is_all_of_its_parts(decisions, verdict) -> None:
    assert verdict_of(decisions) == verdict


def test_the_correction_is_over_all_parts_of_all_claims() -> None:
    tables = Tables({"table-2": table_2(0.7, 0.6, 0.5), "fig-4": cell_rows(5.0, 5.0)})
    parts = [part for one in judge(tables) for part in one.parts]
    assert len(parts) == 2 + 10 + 2
    assert [part.corrected_p for part in parts] == holm([part.outcome.p_value for part in parts])


def test_without_any_run_every_claim_is_not_run() -> None:
    assert [one.verdict for one in judge(Tables({}))] == ["not run"] * len(CLAIMS) == ["not run"] * 9


def test_verdicts_do_not_change_on_the_way_through_files(tmp_path) -> None:
    own = [*cell_rows(5.0, 5.0)]
    write_rows(tmp_path / "fig-4" / "seeds.csv", own)
    again = read_rows(tmp_path / "fig-4" / "seeds.csv")
    assert claim_rows(judge(Tables({"fig-4": again}))) == claim_rows(judge(Tables({"fig-4": own})))


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


def test_one_seed_or_none_decides_nothing() -> None:
    for values in ([], [3.0], [3.0, math.nan]):
        outcome = outcome_of(values, "above", 0.0)
        assert outcome.p_value == 1.0
        assert decide(outcome, 0.0) == "undecided"
        assert seeds_needed(values, "above", 0.0, 3) is None


def test_equal_values_are_decided_and_the_threshold_is_not_beyond_itself() -> None:
    for value, decision in ((2.0, "holds"), (1.0, "does not hold"), (0.0, "does not hold")):
        found = outcome_of([value] * 3, "above", 1.0)
        assert (found.p_value, decide(found, found.p_value)) == (0.0, decision)


@pytest.mark.parametrize("count", [2, 5, 6, 13])
def test_the_sign_flip_test_tries_all_signs(count: int) -> None:
    values = np.random.default_rng(count).normal(0.5, 1.0, count)
    all_sums = [abs(np.dot(signs, values)) for signs in itertools.product((1, -1), repeat=count)]
    expected = np.mean([total >= abs(values.sum()) - 1e-12 for total in all_sums])
    assert sign_flip(values) == pytest.approx(expected)


def test_sums_that_differ_by_rounding_are_equal_in_the_sign_flip_test() -> None:
    assert sign_flip([0.1, 0.5, 0.3, -0.9]) == 1.0  # their sum is zero but for rounding
    assert sign_flip([0.1] * 3) == 0.25  # all signs alike: two of eight


def test_holm_by_hand() -> None:
    # Sorted 0.005, 0.01, 0.03, 0.04 times 4, 3, 2, 1: 0.02, 0.03, 0.06, 0.04; the last not below 0.06.
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.7, 0.9]) == [1.0, 1.0]
    assert holm([]) == []


def test_a_decision_needs_a_corrected_p_below_the_level_and_takes_the_side_of_the_mean() -> None:
    surely = outcome_of([1.0, 1.1, 0.9], "above", 0.0)
    assert decide(surely, 0.049) == "holds"
    assert decide(surely, 0.05) == "undecided"
    assert decide(outcome_of([1.0, 1.1, 0.9], "below", 0.0), 0.01) == "does not hold"


@pytest.mark.parametrize(("side", "threshold"), [("above", 0.2), ("within", 1.5)])
def test_the_seeds_that_would_decide_are_the_first_number_that_does(side, threshold) -> None:
    needed = seeds_needed(VALUES, side, threshold, 7)
    distance = 0.8 if side == "above" else 0.5
    spread = np.std(VALUES, ddof=1)

    def decides(n: int) -> bool:
        reach = stats.t.ppf(1 - LEVEL / 14, n - 1) + stats.t.ppf(POWER, n - 1)
        return distance >= reach * spread / math.sqrt(n)

    assert needed == next(n for n in range(len(VALUES), 10_000) if decides(n))
    # With so many seeds of that mean and spread, the test does decide in about four of five cases.
    rng = np.random.default_rng(0)
    mean = threshold + distance if side == "above" else threshold - distance
    draws = rng.normal(mean, spread, (2000, needed))
    p_values = stats.ttest_1samp(draws, threshold, axis=1).pvalue
    assert 0.75 < np.mean(p_values < LEVEL / 7) < 0.9


def test_what_no_number_of_seeds_would_decide_is_said() -> None:
    assert seeds_needed([-1.0, 1.0], "above", 0.0, 5) is None
    assert seeds_needed([-1.0, 1.0 + 1e-9], "above", 0.0, 5) is None
