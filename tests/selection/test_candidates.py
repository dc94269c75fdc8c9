"""What a policy looks at: the columns of some devices stay together."""

from __future__ import annotations

from dataclasses import fields

import numpy as np

from fedwave.selection import Candidates, History
from tests.selection.crowds import crowd

HISTORY = History(
    times_selected=np.array([3, 0, 5, 1]),
    last_selected=np.array([7, -1, 9, 2]),
    last_contribution=np.array([0.5, np.nan, 2.5, 3.5]),
    last_loss=np.array([10.0, np.nan, 12.0, 13.0]),
)


def test_nothing_is_remembered_before_the_first_round() -> None:
    empty = History.empty(3)
    assert empty.times_selected.tolist() == [0, 0, 0]
    assert empty.last_selected.tolist() == [-1, -1, -1]
    assert np.isnan(empty.last_contribution).all()
    assert np.isnan(empty.last_loss).all()
    assert {getattr(empty, field.name).shape for field in fields(empty)} == {(3,)}


def test_the_memory_of_some_devices_is_in_the_order_given() -> None:
    part = HISTORY.of(np.array([3, 0]))
    assert part.times_selected.tolist() == [1, 3]
    assert part.last_selected.tolist() == [2, 7]
    assert part.last_contribution.tolist() == [3.5, 0.5]
    assert part.last_loss.tolist() == [13.0, 10.0]


def test_candidates_among_others_keep_their_own_columns_and_their_order() -> None:
    everybody = crowd(
        4,
        device_index=np.array([2, 5, 6, 9]),
        num_samples=np.array([20, 50, 60, 90]),
        history=HISTORY,
        contribution=np.array([0.2, 0.5, 0.6, 0.9]),
        loss=np.array([-2.0, -5.0, -6.0, -9.0]),
    )
    some = everybody.among(np.array([9, 1, 2, 6]))  # 1 is no candidate
    assert len(everybody) == 4
    assert len(some) == 3
    assert some.device_index.tolist() == [2, 6, 9]
    assert some.num_samples.tolist() == [20, 60, 90]
    assert some.history.times_selected.tolist() == [3, 5, 1]
    assert some.history.last_loss.tolist() == [10.0, 12.0, 13.0]
    assert some.contribution is not None
    assert some.loss is not None
    assert some.contribution.tolist() == [0.2, 0.6, 0.9]
    assert some.loss.tolist() == [-2.0, -6.0, -9.0]


def test_columns_that_are_not_there_stay_so() -> None:
    some: Candidates = crowd(3).among(np.array([1]))
    assert some.contribution is None
    assert some.loss is None
    assert some.device_index.tolist() == [1]
