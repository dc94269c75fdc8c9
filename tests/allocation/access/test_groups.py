"""Groups of which at most one is taken, against loops over each."""

from __future__ import annotations

import numpy as np
import pytest

from fedwave.allocation.access.groups import Groups

LABELS = np.array([2, 2, 5, 6, 6, 6, 9])
MEMBERS = [[0, 1], [2], [3, 4, 5], [6]]


@pytest.mark.parametrize("seed", range(12))
def test_best_leaders_and_rivals_are_those_of_each_group(seed: int) -> None:
    rng = np.random.default_rng(seed)
    worth = rng.integers(-2, 3, 7).astype(np.float64)  # with ties
    worth[rng.random(7) < 0.2] = -np.inf
    groups = Groups.of(LABELS)
    leaders, rivals = groups.leaders(worth), groups.rivals(worth)
    for number, members in enumerate(MEMBERS):
        values = worth[members]
        assert groups.best(worth)[number] == values.max()
        first = members[int(values.argmax())]
        assert [i for i in members if leaders[i]] == [first]
        for i in members:
            others = [worth[j] for j in members if j != i]
            assert groups.number[i] == number
            assert rivals[i] == max(others, default=-np.inf)
    assert groups.is_alone.tolist() == [False, False, True, False, False, False, True]


def test_tables_have_their_groups_on_the_last_axis() -> None:
    worth = np.random.default_rng(3).normal(size=(4, 7))
    groups = Groups.of(LABELS)
    for row, best, leaders in zip(worth, groups.best(worth), groups.leaders(worth), strict=True):
        assert best.tolist() == groups.best(row).tolist()
        assert leaders.tolist() == groups.leaders(row).tolist()


def test_nobody_is_no_group() -> None:
    groups = Groups.of(np.zeros(0, dtype=np.int64))
    assert groups.best(np.zeros(0)).size == groups.leaders(np.zeros(0)).size == groups.is_alone.size == 0
