"""What the server remembers of its devices, as arrays."""

from __future__ import annotations

import copy

import numpy as np
import pytest

from fedwave.errors import RunError
from fedwave.selection import History
from fedwave.server import Reports
from fedwave.server.memory import history_from_state, history_to_state, remember

HISTORY = History(
    times_selected=np.array([0, 3, 1]),
    last_selected=np.array([-1, 6, 2]),
    last_contribution=np.array([np.nan, 1.5, -2.0]),
    last_loss=np.array([np.nan, 0.25, 4.0]),
)
NAMES = ("times_selected", "last_selected", "last_contribution", "last_loss")


def test_a_history_comes_back_from_its_state() -> None:
    state = history_to_state(HISTORY)
    assert list(state) == [f"history.{name}" for name in NAMES]
    back = history_from_state({**state, "other": np.zeros(1)}, 3)
    for name in NAMES:
        np.testing.assert_array_equal(getattr(back, name), getattr(HISTORY, name))
        assert getattr(back, name).dtype == getattr(HISTORY, name).dtype


@pytest.mark.parametrize("name", NAMES)
def test_a_column_that_is_missing_or_of_another_fleet_is_named(name: str) -> None:
    state = history_to_state(HISTORY)
    with pytest.raises(RunError, match=rf"must hold history.{name} for 3 devices, got \(2, 3\)\. It belongs"):
        history_from_state({**state, f"history.{name}": np.zeros((2, 3))}, 3)
    del state[f"history.{name}"]
    with pytest.raises(RunError, match=rf"must hold history.{name} for 3 devices, got None\. It belongs"):
        history_from_state(state, 3)


def test_a_round_adds_to_the_memory_and_leaves_the_old_one_alone() -> None:
    before = copy.deepcopy(HISTORY)
    reports = Reports(
        device_index=np.array([0, 2]),
        contribution=np.array([7.0, 8.0]),
        loss=np.array([0.5, 0.75]),
        num_samples=np.array([4, 4]),
        gradient_norms=np.ones((2, 1)),
    )
    after = remember(HISTORY, 9, reports, np.array([2]))
    assert after.times_selected.tolist() == [0, 3, 2]
    assert after.last_selected.tolist() == [-1, 6, 9]
    assert after.last_contribution.tolist() == [7.0, 1.5, 8.0]
    assert after.last_loss.tolist() == [0.5, 0.25, 0.75]
    for name in NAMES:
        np.testing.assert_array_equal(getattr(HISTORY, name), getattr(before, name))
