from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fedwave.allocation.optimal.dominance as dominance
from fedwave.allocation.optimal.dominance import undominated


def undominated_by_counting(criteria, depth):
    """Compare all pairs: j beats i if it is at least as good in all, and better in one or earlier."""
    no_worse = np.logical_and.reduce([values[None, :] >= values[:, None] for values in criteria])
    is_equal = np.logical_and.reduce([values[None, :] == values[:, None] for values in criteria])
    num_better = np.count_nonzero(no_worse & ~is_equal, axis=1) + np.count_nonzero(
        np.tril(is_equal, -1), axis=1
    )
    return np.flatnonzero(num_better < depth).tolist()


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 60), st.integers(1, 6), st.integers(1, 4), st.booleans())
def test_exactly_the_rows_with_few_better_ones_stay(seed, num_rows, depth, num_criteria, has_ties):
    rng = np.random.default_rng(seed)
    draw = (
        (lambda: rng.integers(0, 4, num_rows).astype(float)) if has_ties else (lambda: rng.random(num_rows))
    )
    criteria = tuple(draw() for _ in range(num_criteria))
    assert undominated(criteria, depth).tolist() == undominated_by_counting(criteria, depth)


@pytest.mark.parametrize("num_rows", [128, 199, 200, 201])
@pytest.mark.parametrize("depth", [1, 127, 128, 199])
def test_a_row_may_have_all_others_before_it(num_rows, depth):
    falling = np.arange(num_rows, 0.0, -1.0)
    assert undominated((falling, falling), depth).tolist() == list(range(min(depth, num_rows)))


@pytest.mark.parametrize("has_ties", [False, True])
@pytest.mark.parametrize("num_criteria", [1, 2, 3, 4])
@pytest.mark.parametrize("depth", [1, 7, 40])
def test_large_sets_take_the_short_cuts_and_stay_exact(has_ties, num_criteria, depth):
    rng = np.random.default_rng(depth)
    u, h, p, e = rng.random((4, 3000))
    criteria = (u, h, h * p, h * e)[:num_criteria]
    if has_ties:
        criteria = tuple(values.round(1) for values in criteria)
    assert undominated(criteria, depth).tolist() == undominated_by_counting(criteria, depth)


def test_depths_of_more_than_one_strip_stay_exact(monkeypatch):
    monkeypatch.setattr(dominance, "_STRIP", 100)
    criteria = tuple(np.random.default_rng(2).random((3, 2500)).round(2))
    assert undominated(criteria, 250).tolist() == undominated_by_counting(criteria, 250)


def test_infinite_criteria_are_compared_like_others():
    rng = np.random.default_rng(3)
    u, h = rng.random((2, 2000))
    limit = np.where(rng.random(2000) < 0.3, np.inf, rng.random(2000))
    criteria = (u, h, h * limit)
    assert undominated(criteria, 10).tolist() == undominated_by_counting(criteria, 10)


def test_rows_in_falling_order_and_their_reverse_give_the_same_rows():
    u, h, p = np.random.default_rng(4).random((3, 5000))
    falling = np.argsort(-u)
    kept = undominated((u, h, h * p), 20)
    for order in (falling, falling[::-1]):
        again = undominated((u[order], h[order], (h * p)[order]), 20)
        assert np.sort(order[again]).tolist() == kept.tolist()


def test_bits_are_counted_with_and_without_numpy_2(monkeypatch):
    words = np.random.default_rng(5).integers(0, 2**64, (7, 3), dtype=np.uint64)
    exact = [sum(bin(int(word)).count("1") for word in row) for row in words]
    assert dominance._num_bits(words).tolist() == exact
    monkeypatch.delattr(np, "bitwise_count", raising=False)
    assert dominance._num_bits(words).tolist() == exact


def test_equal_devices_do_not_strike_each_other_out():
    same = np.ones(5000)
    assert undominated((same, same, same), 20).tolist() == list(range(20))


def test_an_antichain_stays_whole():
    rising = np.arange(2000.0)
    assert undominated((rising, -rising), 3).size == 2000


def test_a_spent_budget_keeps_more_rows_never_fewer(monkeypatch):
    rng = np.random.default_rng(0)
    criteria = tuple(rng.random((3, 4000)))
    exact = set(undominated(criteria, 30).tolist())
    monkeypatch.setattr(dominance, "_MAX_COMPARISONS", 300_000)
    loose = set(undominated(criteria, 30).tolist())
    assert exact < loose


def test_depth_beyond_the_number_of_rows_keeps_all():
    assert undominated((np.arange(3.0),), 5).tolist() == [0, 1, 2]
    assert undominated((np.zeros(0),), 5).tolist() == []
