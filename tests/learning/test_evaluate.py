"""Evaluation against one done by hand: a plain module, one device at a time, no stack and no padding."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from fedwave.learning import TASKS, Batch, Model, adapt, build_model, evaluate
from fedwave.learning.models import UserModel
from tests.learning.stacks import SMALL, Samples, class_samples, padded, real_samples

SHAPE = (2, 5, 4)
SUPPORT_SIZES = (4, 1, 2, 5, 3, 1)
QUERY_SIZES = (7, 3, 9, 1, 5, 6)
INNER_LR = 0.3
STEPS = 2

PlainLoss = Callable[[Tensor, Tensor], Tensor]
PlainMetric = Callable[[Tensor, Tensor], float]


def share_correct(outputs: Tensor, targets: Tensor) -> float:
    answers = [max(range(len(row)), key=row.__getitem__) for row in outputs.tolist()]
    num_right = sum(answer == right for answer, right in zip(answers, targets.tolist(), strict=True))
    return num_right / len(answers)


def absolute_error(outputs: Tensor, targets: Tensor) -> float:
    return float(np.abs(outputs.numpy() - targets.numpy()).mean())


def by_hand(
    module: nn.Module,
    support: Samples,
    query: Samples,
    *,
    num_steps: int = STEPS,
    inner_lr: float = INNER_LR,
    loss: PlainLoss = F.cross_entropy,
    metric: PlainMetric = share_correct,
) -> tuple[float, float]:
    """Return one device's loss and metric, in float64 with nothing but torch's own layers."""
    own = copy.deepcopy(module).double()
    for _ in range(num_steps):
        value = loss(own(support.inputs.double()), support.targets)
        gradients = torch.autograd.grad(value, list(own.parameters()))
        with torch.no_grad():
            for parameter, gradient in zip(own.parameters(), gradients, strict=True):
                parameter -= inner_lr * gradient
    with torch.no_grad():
        outputs = own(query.inputs.double())
        return float(loss(outputs, query.targets)), metric(outputs, query.targets)


def small_net(input_shape: tuple[int, ...], num_outputs: int) -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(40, 5), nn.Tanh(), nn.Linear(5, num_outputs))


def small_model(kind: str, num_outputs: int = 3) -> Model:
    if kind == "user":
        return UserModel(small_net, SHAPE, num_outputs)
    return build_model(kind, SHAPE, num_outputs, **SMALL[kind])


@pytest.fixture(scope="module")
def devices() -> tuple[list[Samples], list[Samples]]:
    support = class_samples(SUPPORT_SIZES, SHAPE, 3, seed=1)
    query = class_samples(QUERY_SIZES, SHAPE, 3, seed=2)
    return support, query


@pytest.mark.parametrize("kind", [*SMALL, "user"])
@pytest.mark.parametrize("num_steps", [0, 1, STEPS])
def test_loss_and_accuracy_are_those_of_each_device_adapted_by_hand(
    kind: str, num_steps: int, devices: tuple[list[Samples], list[Samples]]
) -> None:
    support, query = devices
    model = small_model(kind)
    parameters = model.initial_parameters(np.random.default_rng(0))
    got = evaluate(
        model,
        TASKS["classification"](),
        parameters,
        padded(support),
        padded(query),
        num_steps=num_steps,
        inner_lr=INNER_LR,
    )
    module = model.to_module(parameters)
    expected = [by_hand(module, *own, num_steps=num_steps) for own in zip(support, query, strict=True)]
    np.testing.assert_allclose(got.loss.numpy(), [loss for loss, _ in expected], rtol=2e-5)
    assert got.metric.tolist() == [share for _, share in expected]  # to the last bit: a count over a size


@pytest.mark.parametrize("kind", ["cnn", "mlp", "softmax"])
def test_in_float64_the_losses_agree_to_rounding(
    kind: str, devices: tuple[list[Samples], list[Samples]]
) -> None:
    support, query = devices
    model = small_model(kind)
    parameters = {k: v.double() for k, v in model.initial_parameters(np.random.default_rng(0)).items()}
    got = evaluate(
        model,
        TASKS["classification"](),
        parameters,
        padded(support, torch.float64),
        padded(query, torch.float64),
        num_steps=STEPS,
        inner_lr=INNER_LR,
    )
    module = model.to_module(parameters)
    expected = [by_hand(module, *own)[0] for own in zip(support, query, strict=True)]
    np.testing.assert_allclose(got.loss.numpy(), expected, rtol=1e-12)


@pytest.mark.parametrize("kind", ["mlp", "softmax"])
def test_a_regression_is_scored_by_its_absolute_error(kind: str) -> None:
    support = real_samples(SUPPORT_SIZES, SHAPE, 2, seed=3)
    query = real_samples(QUERY_SIZES, SHAPE, 2, seed=4)
    model = small_model(kind, num_outputs=2)
    parameters = {k: v.double() for k, v in model.initial_parameters(np.random.default_rng(0)).items()}
    got = evaluate(
        model,
        TASKS["regression"](),
        parameters,
        padded(support, torch.float64),
        padded(query, torch.float64),
        num_steps=STEPS,
        inner_lr=0.05,
    )

    def squared_error(outputs: Tensor, targets: Tensor) -> Tensor:
        return F.mse_loss(outputs, targets.double())

    module = model.to_module(parameters)
    expected = [
        by_hand(module, *own, inner_lr=0.05, loss=squared_error, metric=absolute_error)
        for own in zip(support, query, strict=True)
    ]
    np.testing.assert_allclose(got.loss.numpy(), [loss for loss, _ in expected], rtol=1e-12)
    np.testing.assert_allclose(got.metric.numpy(), [error for _, error in expected], rtol=1e-12)


def test_the_evaluation_by_hand_tells_wrong_evaluations_from_the_right_one(
    devices: tuple[list[Samples], list[Samples]],
) -> None:
    """On these devices each mistake moves some loss, and the coarse ones some accuracy, beyond rounding."""
    support, query = devices
    model = small_model("mlp")
    module = model.to_module(model.initial_parameters(np.random.default_rng(0)))

    def all_by_hand(queries: Sequence[Samples], **options: Any) -> np.ndarray:
        return np.array([by_hand(module, s, q, **options) for s, q in zip(support, queries, strict=True)])

    right = all_by_hand(query)
    with_padding = [
        Samples(padded(query).inputs[row], padded(query).targets[row]) for row in range(len(query))
    ]
    for wrong in (
        all_by_hand(support),
        all_by_hand(query, inner_lr=INNER_LR / 2),
        all_by_hand(query, num_steps=STEPS - 1),
        all_by_hand(query, num_steps=STEPS + 1),
        all_by_hand(with_padding),
    ):
        assert np.abs(wrong[:, 0] - right[:, 0]).max() > 1e-2
    for wrong in (all_by_hand(support), all_by_hand(query, num_steps=0), all_by_hand(with_padding)):
        assert np.abs(wrong[:, 1] - right[:, 1]).max() > 1e-2


def one_hot_batch(classes: Sequence[int], answers: Sequence[int], num_padded: int) -> Batch:
    """Return a batch whose inputs are themselves the outputs that give those answers."""
    inputs = F.one_hot(torch.tensor([[*answers, *answers[:1] * num_padded]]), 2).float()
    targets = torch.tensor([[*classes, *classes[:1] * num_padded]])
    weights = torch.tensor([[1.0 / len(classes)] * len(classes) + [0.0] * num_padded])
    return Batch(inputs, targets, weights)


def test_an_accuracy_is_exactly_the_count_over_the_size() -> None:
    model = build_model("softmax", (2,), 2)
    identity = {"linear1.weight": torch.eye(2), "linear1.bias": torch.zeros(2)}
    for size in range(1, 120):
        for num_right in {0, size // 3, size - 1, size}:
            batch = one_hot_batch([1] * size, [1] * num_right + [0] * (size - num_right), num_padded=size % 4)
            got = evaluate(
                model, TASKS["classification"](), identity, batch, batch, num_steps=0, inner_lr=0.1
            )
            assert got.metric.tolist() == [num_right / size]


def test_a_padded_sample_without_a_score_does_not_spoil_the_metric() -> None:
    model = build_model("softmax", (2,), 2)
    identity = {"linear1.weight": torch.eye(2), "linear1.bias": torch.zeros(2)}
    inputs = torch.tensor([[[1.0, 2.0], [float("nan"), 0.0]]])
    batch = Batch(inputs, torch.zeros(1, 2, 2), torch.tensor([[1.0, 0.0]]))
    got = evaluate(model, TASKS["regression"](), identity, batch, batch, num_steps=0, inner_lr=0.1)
    assert got.metric.tolist() == [1.5]


class HalfUsed(nn.Module):
    """A module with a parameter that its forward leaves out."""

    def __init__(self, num_outputs: int) -> None:
        super().__init__()
        self.used = nn.Linear(4, num_outputs)
        self.spare = nn.Linear(4, num_outputs)

    def forward(self, inputs: Tensor) -> Tensor:
        outputs: Tensor = self.used(inputs)
        return outputs


def test_adaptation_leaves_a_parameter_alone_that_the_loss_ignores() -> None:
    model = UserModel(HalfUsed, (4,), 3)
    parameters = model.initial_parameters(np.random.default_rng(0))
    support = padded(class_samples((3, 2), (4,), 3, seed=0))
    adapted = adapt(model, TASKS["classification"](), parameters, support, num_steps=1, inner_lr=0.1)
    for row in range(2):
        assert torch.equal(adapted["spare.weight"][row], parameters["spare.weight"])
        assert not torch.equal(adapted["used.weight"][row], parameters["used.weight"])


def test_evaluation_changes_neither_the_model_nor_the_samples(
    devices: tuple[list[Samples], list[Samples]],
) -> None:
    model = small_model("cnn")
    parameters = model.initial_parameters(np.random.default_rng(0))
    support, query = (padded(part) for part in devices)
    tensors = [
        *parameters.values(),
        *(getattr(batch, name) for batch in (support, query) for name in ("inputs", "targets", "weights")),
    ]
    before = [value.clone() for value in tensors]
    got = evaluate(
        model, TASKS["classification"](), parameters, support, query, num_steps=2, inner_lr=INNER_LR
    )
    assert all(torch.equal(old, new) for old, new in zip(before, tensors, strict=True))
    assert not any(value.requires_grad for value in (*parameters.values(), got.loss, got.metric))
    assert got.metric.dtype == torch.float64


def test_a_model_that_wants_gradients_is_evaluated_without_a_graph(
    devices: tuple[list[Samples], list[Samples]],
) -> None:
    model = small_model("softmax")
    leaves = {k: v.requires_grad_() for k, v in model.initial_parameters(np.random.default_rng(0)).items()}
    support, query = (padded(part) for part in devices)
    task = TASKS["classification"]()
    for num_steps in (0, 1):
        got = evaluate(model, task, leaves, support, query, num_steps=num_steps, inner_lr=INNER_LR)
        assert not got.loss.requires_grad
    adapted = adapt(model, task, leaves, support, num_steps=1, inner_lr=INNER_LR)
    assert not any(value.requires_grad for value in adapted.values())
