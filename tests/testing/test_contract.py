"""Where two answers differ: to the bit, in type, in entries; NaN equals NaN."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from fedwave.testing.contract import difference, through_a_checkpoint


@pytest.mark.parametrize(
    "value",
    [1.5, float("nan"), "text", None, True, np.array([1.0, np.nan]), np.array([1, 2]), {"a": [1, {"b": 2}]}],
)
def test_a_value_does_not_differ_from_its_like(value: Any) -> None:
    assert difference(value, value) == ""


@pytest.mark.parametrize(
    ("one", "other", "place"),
    [
        (1, 2, "value"),
        (1, 1.0, "value"),
        (1.0, float("nan"), "value"),
        (float("nan"), 1.0, "value"),
        (None, 0, "value"),
        (np.array([1.0]), np.array([1.0], dtype=np.float32), "value"),
        (np.array([1.0]), np.array([1]), "value"),
        (np.array([1.0, 2.0]), np.array([1.0]), "value"),
        ({"a": 1, "b": 2}, {"a": 1, "b": 3}, "another b: 3 instead of 2"),
        ({"a": 1}, {"a": 1, "b": 2}, "other entries: b"),
        ({"a": (1, 2)}, {"a": (1, 3)}, "another a[1]"),
        (torch.zeros(2), torch.ones(2), "value"),
    ],
)
def test_a_difference_is_named_by_its_place(one: Any, other: Any, place: str) -> None:
    assert place in difference(one, other)


def test_a_checkpoint_gives_back_types_shapes_and_values() -> None:
    state = {"count": np.arange(3), "none": np.zeros((0, 4), dtype=np.float32), "one": np.array(2.5)}
    back = through_a_checkpoint(state)
    assert difference(state, back) == ""
    assert not any(np.shares_memory(state[name], back[name]) for name in state)
    assert back["none"].shape == (0, 4)
