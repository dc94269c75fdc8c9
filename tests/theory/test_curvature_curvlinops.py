"""Hessians of the stack against curvlinops, which takes torch's own modules and shares no code with ours."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import torch
from scipy.sparse.linalg import LinearOperator, eigsh
from torch import Tensor, nn

from fedwave.learning import Batch, Model, Parameters, build_model
from fedwave.learning.parameters import unstack
from fedwave.learning.tasks import Classification
from fedwave.theory.curvature import StackedHessian, from_rows, spectral_norms
from fedwave.theory.estimates import Effort, estimate_constants
from tests.devices.pools import EVERYONE, NUM_DEVICES, small_pool
from tests.learning.stacks import SMALL
from tests.theory.test_curvature import small_stack

# A library that curvlinops uses scripts its functions, when it is imported and later.
pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated:DeprecationWarning")

KINDS = ("softmax", "mlp", "cnn")


def operator(model: Model, parameters: Parameters, inputs: Tensor, targets: Tensor) -> LinearOperator:
    """Return the Hessian of the mean loss on some samples, in the order of the module's parameters."""
    from curvlinops import HessianLinearOperator

    module = model.to_module(parameters).double()
    own = list(module.parameters())
    return HessianLinearOperator(module, nn.CrossEntropyLoss(), own, [(inputs.double(), targets)]).to_scipy()


def flat_in_module(model: Model, parameters: Parameters) -> np.ndarray:
    """Return the numbers of one model, or of a vector like it, in the order of the module's parameters."""
    names = [name for name, _ in model.to_module(parameters).named_parameters()]
    state = model.to_state_dict(parameters)
    return np.concatenate([state[name].numpy().ravel() for name in names])


def devices_of(rows: Tensor, parameters: Parameters) -> Iterator[Parameters]:
    """Yield the rows of a stack, each as a model."""
    like = {name: value.expand(len(rows), *value.shape) for name, value in parameters.items()}
    stacked = from_rows(rows, like)
    return (unstack(stacked, at) for at in range(len(rows)))


def three_devices(kind: str, seed: int) -> tuple[Model, Parameters, Batch, StackedHessian]:
    """Return a small model, its parameters, the samples of three devices, and their Hessians."""
    parameters, batch, loss = small_stack(kind, 3, seed)
    model = build_model(kind, (1, 4, 4), 3, **SMALL[kind])
    return model, parameters, batch, StackedHessian(loss, parameters, [batch])


@pytest.mark.parametrize("kind", KINDS)
def test_products_are_those_of_curvlinops(kind: str) -> None:
    model, parameters, batch, stacked = three_devices(kind, 4)
    vectors = torch.from_numpy(np.random.default_rng(0).normal(size=stacked.gradient.shape))
    found = devices_of(stacked.product(vectors), parameters)
    for at, (vector, product) in enumerate(zip(devices_of(vectors, parameters), found, strict=True)):
        theirs = operator(model, parameters, batch.inputs[at], batch.targets[at])
        expected = theirs @ flat_in_module(model, vector)
        assert np.linalg.norm(expected) > 1e-3
        np.testing.assert_allclose(flat_in_module(model, product), expected, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("kind", KINDS)
def test_spectral_norms_are_those_of_curvlinops(kind: str) -> None:
    model, parameters, batch, stacked = three_devices(kind, 5)
    start = torch.from_numpy(np.random.default_rng(1).normal(size=stacked.gradient.shape))
    found, *_ = spectral_norms(stacked.product, start, num_iterations=30)
    for at in range(3):
        theirs = operator(model, parameters, batch.inputs[at], batch.targets[at])
        (largest,) = eigsh(theirs, k=1, which="LM", return_eigenvectors=False)
        assert float(found[at]) == pytest.approx(abs(largest), rel=1e-6)


def test_the_estimated_smoothness_is_the_largest_eigenvalue_of_curvlinops() -> None:
    pool = small_pool()
    model = build_model("mlp", pool.dataset.input_shape, pool.dataset.num_outputs, **SMALL["mlp"])
    parameters = model.initial_parameters(np.random.default_rng(3))
    found = estimate_constants(
        model,
        Classification(),
        pool,
        parameters,
        step_length=0.05,
        effort=Effort(num_devices=NUM_DEVICES, num_iterations=40, num_probes=1),
        rng=np.random.default_rng(0),
    )
    for at in EVERYONE:
        samples = pool.everything(np.array([at]))
        theirs = operator(model, parameters, samples.inputs[0], samples.targets[0])
        (largest,) = eigsh(theirs, k=1, which="LM", return_eigenvectors=False)
        assert found.local_smoothness[at] == pytest.approx(abs(largest), rel=1e-4)
