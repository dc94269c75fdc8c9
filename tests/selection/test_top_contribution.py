"""NUFM's selection against a stable sort."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fedwave.selection import TopContribution
from fedwave.selection.top_contribution import largest
from tests.selection.crowds import crowd


@given(scores=st.lists(st.integers(-3, 3), min_size=1, max_size=30), count=st.integers(1, 35))
def test_it_equals_a_stable_sort_also_with_ties(scores: list[int], count: int) -> None:
    values = np.array(scores, dtype=float)
    index = 3 * np.arange(len(scores)) + 1
    expected = index[np.sort(np.argsort(-values, kind="stable")[:count])]
    reporting = crowd(len(scores), device_index=index, contribution=values, loss=-values)
    got = TopContribution(count).select(reporting, rng=np.random.default_rng(0))
    assert np.array_equal(got, expected)


@given(
    scores=st.lists(st.floats(-1e6, 1e6) | st.integers(-2, 2), min_size=1, max_size=30),
    share=st.floats(0, 1),
)
def test_the_largest_of_any_numbers_are_those_of_a_stable_sort(scores: list[float], share: float) -> None:
    values = np.array(scores, dtype=float)
    count = round(share * len(scores))
    ranked = sorted(range(len(scores)), key=lambda i: (-values[i], i))
    assert largest(values, count).tolist() == sorted(ranked[:count])


def test_everybody_computes_since_contributions_are_known_only_after() -> None:
    asked = TopContribution(1).ask(crowd(5), rng=np.random.default_rng(0))
    assert asked.tolist() == [0, 1, 2, 3, 4]
