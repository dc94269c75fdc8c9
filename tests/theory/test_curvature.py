"""Products with Hessians and norms of matrices, against dense matrices of the same."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from fedwave.learning import Batch, Parameters, build_model
from fedwave.learning.objective import objective
from fedwave.learning.parameters import stack_copies
from fedwave.learning.tasks import Classification
from fedwave.theory.curvature import StackedHessian, as_rows, from_rows, spectral_norms
from tests.learning.stacks import SMALL

rng = np.random.default_rng(0)


def symmetric(count: int, size: int, seed: int = 0) -> Tensor:
    root = np.random.default_rng(seed).normal(size=(count, size, size))
    return torch.from_numpy(root + root.transpose(0, 2, 1))


def norms_of(matrices: Tensor, num_iterations: int, seed: int = 1) -> tuple[Tensor, Tensor, Tensor]:
    start = torch.from_numpy(np.random.default_rng(seed).normal(size=matrices.shape[:2]))
    return spectral_norms(
        lambda vectors: torch.einsum("sij,sj->si", matrices, vectors), start, num_iterations=num_iterations
    )


def test_all_products_give_the_spectral_norms() -> None:
    matrices = symmetric(5, 7)
    matrices[1] = -torch.diag(torch.arange(7.0, dtype=torch.float64))  # the largest eigenvalue is -6
    found, shown, image = norms_of(matrices, 7)
    np.testing.assert_allclose(found, np.linalg.norm(matrices.numpy(), 2, axis=(1, 2)), rtol=1e-9)
    images = torch.einsum("sij,sj->si", matrices, shown)
    np.testing.assert_allclose(image, images, atol=1e-9)
    np.testing.assert_allclose(torch.linalg.vector_norm(shown, dim=1), 1.0, rtol=1e-9)
    np.testing.assert_allclose(torch.linalg.vector_norm(images, dim=1), found, rtol=1e-9)


@given(st.integers(0, 1000), st.integers(1, 5))
def test_fewer_products_are_a_lower_bound_that_grows(seed: int, num_iterations: int) -> None:
    matrices = symmetric(3, 6, seed)
    true = np.linalg.norm(matrices.numpy(), 2, axis=(1, 2))
    few, shown, _ = norms_of(matrices, num_iterations)
    more, *_ = norms_of(matrices, num_iterations + 1)
    assert (few.numpy() <= more.numpy() * (1 + 1e-12)).all()
    assert (more.numpy() <= true * (1 + 1e-12)).all()
    images = torch.einsum("sij,sj->si", matrices, shown)
    np.testing.assert_allclose(torch.linalg.vector_norm(images, dim=1), few, rtol=1e-7)


def test_one_product_gives_the_length_of_the_image() -> None:
    matrices = symmetric(2, 4)
    start = torch.ones(2, 4, dtype=torch.float64)
    found, *_ = spectral_norms(
        lambda vectors: torch.einsum("sij,sj->si", matrices, vectors), start, num_iterations=1
    )
    np.testing.assert_allclose(found, np.linalg.norm(matrices.numpy() @ np.full(4, 0.5), axis=1))


def test_an_image_that_is_known_is_not_computed_again() -> None:
    matrices, calls = symmetric(2, 5), []

    def product(vectors: Tensor) -> Tensor:
        calls.append(1)
        return torch.einsum("sij,sj->si", matrices, vectors)

    start = torch.eye(5, dtype=torch.float64)[:2]
    known, *_ = spectral_norms(product, start, num_iterations=3, first_image=matrices[[0, 1], [0, 1]])
    assert len(calls) == 2
    found, *_ = spectral_norms(product, start, num_iterations=3)
    assert len(calls) == 5
    np.testing.assert_allclose(known, found, rtol=1e-12)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_spaces_that_close_early_are_no_trouble(dtype: torch.dtype) -> None:
    matrices = torch.stack([torch.zeros(5, 5), torch.eye(5), -3 * torch.eye(5), torch.eye(5)]).to(dtype)
    matrices[3, 0, 0] = 4.0  # two eigenvalues: closed after two products
    found, *_ = spectral_norms(
        lambda vectors: torch.einsum("sij,sj->si", matrices, vectors),
        torch.arange(1.0, 6.0).expand(4, 5).to(dtype),
        num_iterations=5,
    )
    np.testing.assert_allclose(found, [0, 1, 3, 4], rtol=1e-6)


def small_stack(kind: str, num_devices: int, seed: int) -> tuple[Parameters, Batch, object]:
    own = np.random.default_rng(seed)
    model = build_model(kind, (1, 4, 4), 3, **SMALL.get(kind, {}))
    parameters = {name: value.double() for name, value in model.initial_parameters(own).items()}
    inputs = torch.from_numpy(own.normal(size=(num_devices, 5, 1, 4, 4)))
    targets = torch.from_numpy(own.integers(0, 3, (num_devices, 5)))
    weights = torch.full((num_devices, 5), 0.2, dtype=torch.float64)
    return parameters, Batch(inputs, targets, weights), objective(model, Classification())


def dense_hessians(loss: object, parameters: Parameters, batch: Batch) -> Tensor:
    """Return each device's whole Hessian, row by row."""
    like = {name: value[None] for name, value in parameters.items()}
    row = as_rows(like)[0]
    found = []
    for at in range(batch.num_devices):
        own = Batch(batch.inputs[at, None], batch.targets[at, None], batch.weights[at, None])

        def flat(values: Tensor, own: Batch = own) -> Tensor:
            return loss(from_rows(values[None], like), own)[0]

        found.append(torch.autograd.functional.hessian(flat, row))
    return torch.stack(found)


@pytest.mark.parametrize("kind", ["softmax", "mlp"])
@pytest.mark.parametrize("cut", [1, 2, 3])
def test_products_and_gradients_are_those_of_dense_hessians(kind: str, cut: int) -> None:
    parameters, batch, loss = small_stack(kind, 3, 4)
    dense = dense_hessians(loss, parameters, batch)
    parts = [slice(0, cut), slice(cut, 3)][: 1 if cut == 3 else 2]
    chunks = [Batch(batch.inputs[p], batch.targets[p], batch.weights[p]) for p in parts]
    stacked = StackedHessian(loss, parameters, chunks)
    for seed in range(2):  # the graph survives its first product
        vectors = torch.from_numpy(np.random.default_rng(seed).normal(size=stacked.gradient.shape))
        expected = torch.einsum("sij,sj->si", dense, vectors)
        np.testing.assert_allclose(stacked.product(vectors), expected, rtol=1e-8, atol=1e-10)
    step = 1e-6 * torch.from_numpy(np.random.default_rng(5).normal(size=stacked.gradient.shape))
    stack = as_rows(stack_copies(parameters, 3))
    like = stack_copies(parameters, 3)
    ahead, behind = (loss(from_rows(stack + side * step, like), batch) for side in (1, -1))
    np.testing.assert_allclose((stacked.gradient * step).sum(1), (ahead - behind) / 2, rtol=1e-6)


def test_the_fast_layers_of_the_cnn_take_many_products() -> None:
    parameters, batch, loss = small_stack("cnn", 2, 6)
    dense = dense_hessians(loss, parameters, batch)
    stacked = StackedHessian(loss, parameters, [batch])
    found, *_ = spectral_norms(
        stacked.product,
        torch.from_numpy(rng.normal(size=stacked.gradient.shape)),
        num_iterations=25,
    )
    np.testing.assert_allclose(found, np.linalg.norm(dense.numpy(), 2, axis=(1, 2)), rtol=1e-6)
