"""Delta of Wang et al. from uploads: after one step it is that of the gradients themselves."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from fedwave.learning.gradient_spread import gradient_divergence

BEFORE = {"a": torch.tensor([1.0, 2.0]), "b": torch.tensor([[3.0]])}


def moved(*gradients: list[float], by: float = 0.5) -> list[dict[str, torch.Tensor]]:
    return [
        {
            "a": BEFORE["a"] - by * torch.tensor(own[:2]),
            "b": BEFORE["b"] - by * torch.tensor([own[2:]]),
        }
        for own in gradients
    ]


@pytest.mark.parametrize("weights", [None, np.array([1.0, 2.0, 5.0])])
def test_one_step_gives_the_gradients_themselves(weights: np.ndarray | None) -> None:
    gradients = np.array([[3.0, 0.0, 4.0], [0.0, 1.0, 0.0], [-2.0, 2.0, 1.0]])
    mean = np.average(gradients, axis=0, weights=weights)
    expected = np.linalg.norm(gradients - mean, axis=1)
    found = gradient_divergence(BEFORE, moved(*gradients.tolist()), np.array([5.0, 1.0, 3.0]), weights)
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_longer_ways_count_by_the_norm_that_is_told() -> None:
    ways = moved([3.0, 0.0, 4.0]) + moved([0.0, 1.0, 0.0], by=9.0)
    found = gradient_divergence(BEFORE, ways, np.array([10.0, 2.0]), None)
    # (6, 0, 8) and (0, 2, 0): both are as far from (3, 1, 4)
    np.testing.assert_allclose(found, [np.sqrt(9 + 1 + 16)] * 2, rtol=1e-6)


def test_equal_uploads_and_one_alone_have_no_spread() -> None:
    same = moved([1.0, 2.0, 3.0], [1.0, 2.0, 3.0])
    np.testing.assert_allclose(gradient_divergence(BEFORE, same, np.array([2.0, 2.0]), None), 0, atol=1e-12)
    assert gradient_divergence(BEFORE, same[:1], np.array([2.0]), None).tolist() == [0.0]


def test_a_model_that_stayed_has_no_gradient() -> None:
    found = gradient_divergence(BEFORE, [BEFORE, *moved([3.0, 0.0, 4.0])], np.array([0.0, 5.0]), None)
    np.testing.assert_allclose(found, [2.5, 2.5], rtol=1e-6)
