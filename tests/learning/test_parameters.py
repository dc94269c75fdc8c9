"""Small operations on models, against numpy."""

from __future__ import annotations

import numpy as np
import torch

from fedwave.learning import Parameters
from fedwave.learning.parameters import (
    distance,
    norm,
    num_parameters,
    stack_copies,
    step,
    unstack,
    with_gradients,
)


def model(seed: int = 0) -> Parameters:
    rng = np.random.default_rng(seed)
    return {"a": torch.tensor(rng.standard_normal((2, 3))), "b": torch.tensor(rng.standard_normal(4))}


def flat(parameters: Parameters) -> np.ndarray:
    return np.concatenate([value.numpy().ravel() for value in parameters.values()])


def test_the_norm_is_taken_over_all_parameters_together() -> None:
    one, other = model(0), model(1)
    np.testing.assert_allclose(norm(one, is_stacked=False).numpy(), np.linalg.norm(flat(one)), rtol=1e-14)
    stacked = {name: torch.stack([one[name], other[name]]) for name in one}
    expected = [np.linalg.norm(flat(one)), np.linalg.norm(flat(other))]
    np.testing.assert_allclose(norm(stacked, is_stacked=True).numpy(), expected, rtol=1e-14)


def test_a_step_goes_down_the_gradient() -> None:
    start, gradient = model(0), model(1)
    np.testing.assert_allclose(flat(step(start, gradient, 0.25)), flat(start) - 0.25 * flat(gradient))


def test_stacked_copies_share_memory_and_an_unstacked_model_does_not() -> None:
    start = model()
    stacked = stack_copies(start, 3)
    assert {name: tuple(value.shape) for name, value in stacked.items()} == {"a": (3, 2, 3), "b": (3, 4)}
    assert stacked["a"].data_ptr() == start["a"].data_ptr()
    own = unstack(stacked, 1)
    assert all(torch.equal(own[name], value) for name, value in start.items())
    assert own["a"].data_ptr() != start["a"].data_ptr()
    assert num_parameters(own) == 10


def test_leaves_have_the_values_and_leave_the_model_without_gradients() -> None:
    start = model()
    leaves = with_gradients(start)
    assert all(value.requires_grad and value.is_leaf for value in leaves.values())
    assert not any(value.requires_grad for value in start.values())
    assert all(torch.equal(leaves[name], value) for name, value in start.items())


def test_the_distance_is_the_same_to_the_bit_on_any_number_of_cores() -> None:
    rng = torch.Generator().manual_seed(0)
    one, other = ({"w": torch.randn(2048, 200, generator=rng)} for _ in range(2))
    before, found = torch.get_num_threads(), []
    try:
        for count in (1, 2, 3):
            torch.set_num_threads(count)
            found.append(distance(one, other))
            assert torch.get_num_threads() == count
    finally:
        torch.set_num_threads(before)
    assert found[0] == found[1] == found[2]
    assert abs(found[0] / np.linalg.norm(flat(one).astype(float) - flat(other).astype(float)) - 1) < 1e-13
