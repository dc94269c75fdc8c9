from __future__ import annotations

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from fedwave.selection.top_contribution import largest
from fedwave.simulation.devices.model_store import ModelStore


@given(
    scores=st.lists(st.integers(-4, 4), min_size=1, max_size=40),
    capacity=st.integers(1, 12),
    chunk=st.integers(1, 7),
    seed=st.integers(0, 5),
)
def test_it_keeps_just_the_models_that_the_selection_picks_in_any_order(
    scores: list[int], capacity: int, chunk: int, seed: int
) -> None:
    values = np.array(scores, dtype=float)
    order = np.random.default_rng(seed).permutation(len(values))
    store = ModelStore(capacity)
    for start in range(0, len(order), chunk):
        at = order[start : start + chunk]
        store.offer(at, values[at], {"w": torch.from_numpy(at.astype(np.float32))[:, None]})
    best = largest(values, min(capacity, len(values))).tolist()
    assert store.missing(best) == []
    assert [float(model["w"]) for model in store.models(best)] == [float(position) for position in best]
    assert len(store.missing(range(len(values)))) == len(values) - len(best)


def test_models_come_in_the_order_asked_for_and_do_not_keep_the_stack_alive() -> None:
    store = ModelStore(2)
    stacked = {"w": torch.arange(6.0).reshape(3, 2)}
    store.offer(np.array([4, 7, 9]), np.array([1.0, 3.0, 2.0]), stacked)
    assert store.missing([4, 7, 9]) == [4]
    models = list(store.models([9, 7, 9]))
    assert [model["w"].tolist() for model in models] == [[4.0, 5.0], [2.0, 3.0], [4.0, 5.0]]
    assert all(model["w"].untyped_storage().nbytes() == 8 for model in models)  # two floats of its own


def test_a_store_for_nothing_keeps_nothing() -> None:
    store = ModelStore(0)
    store.offer(np.array([0, 1]), np.array([1.0, 2.0]), {"w": torch.zeros(2, 1)})
    assert store.missing([0, 1]) == [0, 1]
