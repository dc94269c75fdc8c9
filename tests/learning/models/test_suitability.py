"""A user's module is tried before a run: what cannot be trained is refused, what can is trained as it is."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from fedwave.errors import ModelError
from fedwave.learning import TASKS, Batch, evaluate, local_update
from fedwave.learning.models import UserModel
from fedwave.learning.rules import MetaDescent

SHAPE = (6,)


class Attention(nn.Module):
    """Six numbers as three tokens of two, through torch's own attention."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(2, 1, batch_first=True)
        self.linear = nn.Linear(6, 3)

    def forward(self, inputs: Tensor) -> Tensor:
        tokens = inputs.reshape(-1, 3, 2)
        mixed, _ = self.attention(tokens, tokens, tokens, need_weights=False)
        outputs: Tensor = self.linear(mixed.flatten(1))
        return outputs


class Encoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(2, 1, 4, batch_first=True)
        self.linear = nn.Linear(6, 3)

    def forward(self, inputs: Tensor) -> Tensor:
        outputs: Tensor = self.linear(self.layer(inputs.reshape(-1, 3, 2)).flatten(1))
        return outputs


class Unused(nn.Module):
    """A parameter that no output depends on."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(6, 3)
        self.spare = nn.Linear(4, 4)

    def forward(self, inputs: Tensor) -> Tensor:
        outputs: Tensor = self.linear(inputs)
        return outputs


class Frozen(nn.Module):
    """A fixed first layer and a trained second one."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(6, 5)
        self.second = nn.Linear(5, 3)
        self.first.requires_grad_(False)

    def forward(self, inputs: Tensor) -> Tensor:
        outputs: Tensor = self.second(torch.tanh(self.first(inputs)))
        return outputs


class Bad(nn.Module):
    """One way or another unfit for training."""

    def __init__(self, way: str) -> None:
        super().__init__()
        self.way = way
        self.linear = nn.Linear(6, 3)
        self.register_buffer("count", torch.zeros(1))
        if way == "double":
            self.double()

    def forward(self, inputs: Tensor) -> Tensor:
        scores = self.linear(inputs)
        if self.way == "integer":
            return scores.argmax(-1, keepdim=True).expand(-1, 3)
        if self.way == "complex":
            return torch.complex(scores, scores)
        if self.way == "detached":
            return scores.detach()
        if self.way == "random":
            return scores + torch.randn(3)
        if self.way == "mixes":
            return scores - scores.mean(0)
        if self.way == "counts":
            self.count += 1
        if self.way == "exits":
            sys.exit(3)
        return scores


def batch(num_samples: int = 4) -> Batch:
    draw = torch.Generator().manual_seed(1)
    return Batch(
        torch.randn(2, num_samples, *SHAPE, generator=draw),
        torch.randint(0, 3, (2, num_samples), generator=draw),
        torch.full((2, num_samples), 1.0 / num_samples),
    )


@pytest.mark.parametrize("factory", [Attention, Encoder, Unused, Frozen])
def test_what_can_be_trained_takes_a_meta_step_and_an_evaluation(factory: type[nn.Module]) -> None:
    model = UserModel(factory, SHAPE, 3)
    task = TASKS["classification"]()
    parameters = model.initial_parameters(np.random.default_rng(0))
    rule = MetaDescent(0.1, 0.1)
    update = local_update(model, task, rule, parameters, batch(), [batch(5)])
    assert torch.isfinite(update.gradient_norms).all()
    assert (update.gradient_norms > 0).all()
    outcome = evaluate(model, task, parameters, batch(), batch(5), num_steps=2, inner_lr=0.1)
    assert torch.isfinite(outcome.loss).all()
    module = factory()
    module.load_state_dict(model.to_state_dict(parameters))  # the user's own class takes the file
    back = model.from_state_dict(model.to_state_dict(parameters))
    assert all(torch.equal(back[name], value) for name, value in parameters.items())


def test_attention_has_the_exact_meta_gradient() -> None:
    model = UserModel(Attention, SHAPE, 3)
    task = TASKS["classification"]()
    parameters = {k: v.double() for k, v in model.initial_parameters(np.random.default_rng(0)).items()}
    support, query = batch().double(), batch(5).double()
    update = local_update(model, task, MetaDescent(0.1, 0.1), parameters, support, [query])
    module = Attention().double()
    module.load_state_dict(parameters)

    def after_step(shift: float, name: str) -> float:
        """The loss of the first device after one step, with one weight moved."""
        moved = {k: v.clone() for k, v in parameters.items()}
        moved[name].view(-1)[0] += shift
        own = {k: v.requires_grad_() for k, v in moved.items()}
        scores = torch.func.functional_call(module, own, (support.inputs[0],))
        loss = nn.functional.cross_entropy(scores, support.targets[0])
        gradients = torch.autograd.grad(loss, list(own.values()))
        adapted = {k: v - 0.1 * g for (k, v), g in zip(own.items(), gradients, strict=True)}
        scores = torch.func.functional_call(module, adapted, (query.inputs[0],))
        return float(nn.functional.cross_entropy(scores, query.targets[0]).detach())

    for name in ("attention.in_proj_weight", "linear.weight"):
        numeric = (after_step(1e-5, name) - after_step(-1e-5, name)) / 2e-5
        moved = (parameters[name] - update.parameters[name][0]).view(-1)[0] / 0.1
        assert float(moved) == pytest.approx(numeric, rel=1e-6, abs=1e-9)


def test_a_frozen_layer_is_neither_trained_nor_uploaded() -> None:
    model = UserModel(Frozen, SHAPE, 3)
    parameters = model.initial_parameters(np.random.default_rng(0))
    assert set(parameters) == {"second.weight", "second.bias"}
    state = model.to_state_dict(parameters)
    assert set(state) == {"first.weight", "first.bias", "second.weight", "second.bias"}
    module = Frozen()
    module.load_state_dict(state)
    inputs = batch().inputs
    stacked = {name: torch.stack([value, value]) for name, value in parameters.items()}
    torch.testing.assert_close(model.outputs(stacked, inputs)[0], module(inputs[0]))


@pytest.mark.parametrize(
    ("way", "message"),
    [
        ("integer", "must return real numbers, got torch.int64"),
        ("complex", "must return real numbers, got torch.complex64"),
        ("detached", "do not depend on its parameters"),
        ("random", "draws random numbers in its forward"),
        ("mixes", "mixes samples"),
        ("counts", "changes its buffer count"),
        ("exits", "failed in its forward: SystemExit: 3"),
        ("double", r"of type torch.float64, must be torch.float32"),
    ],
)
def test_what_cannot_be_trained_is_refused_in_one_line(way: str, message: str) -> None:
    with pytest.raises(ModelError, match=message) as caught:
        UserModel(lambda: Bad(way), SHAPE, 3)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("factory", "message"),
    [
        (lambda: nn.Flatten(), "has no parameter to train"),
        (lambda: nn.LazyLinear(3), "has a lazy layer"),
        (lambda: sys.exit(1), "failed to build: SystemExit: 1"),
    ],
)
@pytest.mark.filterwarnings("ignore:Lazy modules")
def test_modules_without_parameters_or_sizes_are_refused(factory: object, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        UserModel(factory, SHAPE, 3)  # type: ignore[arg-type]


class Logarithms(nn.Module):
    """It takes positive numbers, as its data are."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(6, 3)

    def forward(self, inputs: Tensor) -> Tensor:
        outputs: Tensor = self.linear(inputs.log())
        return outputs


def test_a_module_is_tried_on_samples_of_the_dataset() -> None:
    samples = torch.rand(6, *SHAPE, generator=torch.Generator().manual_seed(1)) + 0.1
    assert UserModel(Logarithms, SHAPE, 3, samples=samples).is_vectorised
    with pytest.raises(ModelError, match=r"returns infinite outputs or NaN .*Rescale"):
        UserModel(Logarithms, SHAPE, 3, samples=-samples)
    with pytest.raises(ModelError, match="returns infinite outputs or NaN"):
        UserModel(Logarithms, SHAPE, 3)  # normal numbers stand in
