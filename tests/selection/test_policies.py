"""One contract for every selection policy, and what is particular to each."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedwave.errors import ConfigError, ProblemError
from fedwave.selection import POLICIES, TopContribution, Uniform


@pytest.mark.parametrize("name", POLICIES)
@given(
    scores=st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=40),
    share=st.floats(0, 1),
    seed=st.integers(0, 9),
)
def test_every_policy_returns_sorted_distinct_positions_and_changes_nothing(
    name: str, scores: list[float], share: float, seed: int
) -> None:
    values = np.array(scores)
    before = values.copy()
    count = 1 + int(share * (len(scores) - 1))
    policy = POLICIES[name](count)
    chosen = policy.select(len(values), values, rng=np.random.default_rng(seed))
    again = policy.select(len(values), values, rng=np.random.default_rng(seed))
    assert np.array_equal(chosen, again)
    assert len(chosen) == count
    assert np.all(np.diff(chosen) > 0)
    assert chosen[0] >= 0
    assert chosen[-1] < len(values)
    assert np.array_equal(values, before)


@given(scores=st.lists(st.integers(-3, 3), min_size=1, max_size=30), share=st.floats(0, 1))
def test_top_contribution_equals_a_stable_sort_also_with_ties(scores: list[int], share: float) -> None:
    values = np.array(scores, dtype=float)
    count = 1 + int(share * (len(scores) - 1))
    expected = np.sort(np.argsort(-values, kind="stable")[:count])
    got = TopContribution(count).select(len(values), values, rng=np.random.default_rng(0))
    assert np.array_equal(got, expected)


def test_uniform_selects_every_device_equally_often() -> None:
    draws = np.zeros(10)
    for seed in range(4000):
        draws[Uniform(3).select(10, None, rng=np.random.default_rng(seed))] += 1
    # Each count is binomial(4000, 0.3): standard deviation 29, so 5 deviations are 145.
    assert np.all(np.abs(draws - 1200) < 145)


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("count", [0, 6])
def test_selecting_more_devices_than_there_are_fails_with_the_numbers(name: str, count: int) -> None:
    with pytest.raises(ConfigError, match=rf"training devices \(5\), got {count}"):
        POLICIES[name](count).select(5, np.zeros(5), rng=np.random.default_rng(0))


def test_top_contribution_without_contributions_is_refused() -> None:
    with pytest.raises(ProblemError, match="Let every device compute first"):
        TopContribution(1).select(3, None, rng=np.random.default_rng(0))
