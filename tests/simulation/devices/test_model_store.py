from __future__ import annotations

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from fedwave.selection.top_contribution import largest
from fedwave.simulation.model_store import ModelStore


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
