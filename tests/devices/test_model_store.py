from __future__ import annotations

import pickle
from functools import partial

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from fedwave.devices.model_store import ModelStore
from fedwave.learning.parameters import unstack
from fedwave.selection.top_contribution import largest


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
    store = ModelStore[str](capacity)
    for start in range(0, len(order), chunk):
        at = order[start : start + chunk]
        store.offer(at, values[at], [f"model {position}" for position in at].__getitem__)
    best = largest(values, min(capacity, len(values))).tolist()
    for position in range(len(values)):
        assert store.get(position) == (f"model {position}" if position in best else None)


@given(
    scores=st.lists(st.integers(-4, 4), min_size=1, max_size=40),
    capacity=st.integers(0, 12),
    bundle=st.integers(1, 9),
    seed=st.integers(0, 5),
)
def test_stores_filled_elsewhere_lead_to_the_same_models(
    scores: list[int], capacity: int, bundle: int, seed: int
) -> None:
    """As on a cluster: each bundle of devices fills an emptied store, and what that kept is offered here.

    Two bundles are always under way, so that the emptied store knows less than the one here.
    """
    values = np.array(scores, dtype=float)
    order = np.random.default_rng(seed).permutation(len(values))
    here, elsewhere = ModelStore[str](capacity), []
    for start in range(0, len(order), bundle):
        away: ModelStore[str] = pickle.loads(pickle.dumps(here.emptied()))  # noqa: S301 - our own bytes
        at = order[start : start + bundle]
        away.offer(at, values[at], [f"model {position}" for position in at].__getitem__)
        elsewhere.append(away.scored())
        if len(elsewhere) > 1:
            bring_home(here, elsewhere.pop(0))
    for kept in elsewhere:
        bring_home(here, kept)
    best = largest(values, min(capacity, len(values))).tolist() if capacity else []
    assert [here.get(p) for p in range(len(values))] == [
        f"model {p}" if p in best else None for p in range(len(values))
    ]


def bring_home(store: ModelStore[str], kept: list[tuple[int, float, str]]) -> None:
    positions, scores = np.array([p for p, _, _ in kept]), np.array([s for _, s, _ in kept])
    store.offer(positions, scores, [model for _, _, model in kept].__getitem__)


def test_a_full_store_wants_nothing_below_its_worst_elsewhere() -> None:
    store = ModelStore[str](2)
    store.offer(np.array([0, 1, 2]), np.array([5.0, 7.0, 6.0]), "abc".__getitem__)
    away = store.emptied()
    away.offer(np.array([3, 4]), np.array([5.9, 6.0]), "de".__getitem__)
    assert away.scored() == [(4, 6.0, "e")]  # there was room for both
    away.offer(np.array([5]), np.array([9.0]), "f".__getitem__)
    assert away.scored() == [(4, 6.0, "e"), (5, 9.0, "f")]


def test_a_store_for_some_keeps_nobody_elses_model() -> None:
    store = ModelStore[str](2, only=[4, 1])
    store.emptied().offer(np.array([1]), np.array([0.0]), "x".__getitem__)
    store.offer(np.array([0, 1, 2, 4]), np.array([9.0, 1.0, 8.0, 2.0]), "abcd".__getitem__)
    assert [store.get(position) for position in (0, 1, 2, 4)] == [None, "b", None, "d"]
    away = store.emptied()
    away.offer(np.array([3]), np.array([10.0]), "z".__getitem__)
    assert away.scored() == []


def test_a_model_is_a_copy_that_does_not_keep_the_stack_alive() -> None:
    store = ModelStore[dict[str, torch.Tensor]](2)
    stacked = {"w": torch.arange(6.0).reshape(3, 2)}
    store.offer(np.array([4, 7, 9]), np.array([1.0, 3.0, 2.0]), partial(unstack, stacked))
    assert store.get(4) is None
    models = [store.get(position) for position in (9, 7)]
    assert [model["w"].tolist() for model in models if model] == [[4.0, 5.0], [2.0, 3.0]]
    assert all(model["w"].untyped_storage().nbytes() == 8 for model in models if model)  # two floats


def test_a_store_for_nothing_keeps_nothing_and_asks_for_nothing() -> None:
    store = ModelStore[str](0)
    store.offer(np.array([0, 1]), np.array([1.0, 2.0]), {}.__getitem__)
    assert [store.get(0), store.get(1)] == [None, None]
