"""What a broken local rule, server step, task or model is told."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from fedwave.errors import ModelError
from fedwave.learning import Metric, average
from fedwave.learning.models import Mlp
from fedwave.learning.rules import PlainDescent
from fedwave.learning.server_steps import ServerMean, ServerMedian, ServerMomentum
from fedwave.learning.tasks import Classification, Regression
from fedwave.testing import check_model, check_rule, check_server_step, check_task
from tests.testing.broken import complaint


class Changed(PlainDescent):
    """Plain descent, and then something else."""

    def step(self, *inputs: Any, **named: Any) -> Any:
        return self.change(super().step(*inputs, **named))

    def change(self, step: Any) -> Any:
        return step


class Averages(Changed):
    def change(self, step: Any) -> Any:
        return replace(step, loss=step.loss.mean().expand(len(step.loss)))


class Mutates(Changed):
    def step(self, loss: Any, parameters: Any, support: Any, query: Any, *, start: Any) -> Any:
        done = super().step(loss, parameters, support, query, start=start)
        parameters["w"] += 1.0
        return done


class Lucky(Changed):
    def change(self, step: Any) -> Any:
        return replace(step, loss=step.loss + torch.rand(len(step.loss)))


class Graph(Changed):
    def change(self, step: Any) -> Any:
        return replace(step, loss=step.loss.clone().requires_grad_())


class Tuple(Changed):
    def change(self, step: Any) -> Any:
        return step.parameters, step.loss


class OneLoss(Changed):
    def change(self, step: Any) -> Any:
        return replace(step, loss=step.loss.mean())


class Diverges(Changed):
    def change(self, step: Any) -> Any:
        return replace(step, gradient_norm=step.gradient_norm / 0.0)


class SignedNorm(Changed):
    def change(self, step: Any) -> Any:
        return replace(step, gradient_norm=-step.gradient_norm)


class Renames(Changed):
    def change(self, step: Any) -> Any:
        return replace(step, parameters={"weights": step.parameters["w"]})


class Locked(PlainDescent):
    """Cannot travel to another process."""

    def __init__(self, meta_lr: float) -> None:
        super().__init__(meta_lr)
        object.__setattr__(self, "lock", threading.Lock())


class Undecided(PlainDescent):
    pools_samples: Any = None


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (Averages, r"Averages\.step of a device must not depend on the others, got .* Devices compute in"),
        (Mutates, r"step must leave its inputs alone, got another .*w"),
        (Lucky, r"step must answer alike .* loss"),
        (Graph, r"step must return numbers, got a graph"),
        (Tuple, r"step must return a LocalStep"),
        (OneLoss, r"step must return loss for each device, got \(\)"),
        (Diverges, r"step must return a finite gradient_norm"),
        (SignedNorm, r"step must return norms >= 0"),
        (Renames, r"step must return tensors like .*'w'.*, got .*'weights'"),
        (Locked, r"must be such that it can be sent to another process, got TypeError: cannot pickle"),
        (Undecided, r"pools_samples must be True or False"),
    ],
)
def test_a_broken_rule_is_named_with_what_it_must_do(rule: Any, message: str) -> None:
    check_rule(Changed)
    assert complaint(message, check_rule, rule)


class ReadsTwice(ServerMean):
    def step(self, parameters: Any, models: Any, weights: Any, state: Any) -> Any:
        for _ in models:
            pass
        return average(models, weights), state


class SumsWeights(ServerMean):
    def step(self, parameters: Any, models: Any, weights: Any, state: Any) -> Any:
        scale = 1.0 if weights is None else float(weights.sum())
        return {name: scale * value for name, value in average(models).items()}, state


class Spoils(ServerMean):
    def step(self, parameters: Any, models: Any, weights: Any, state: Any) -> Any:
        parameters["a"] += 1.0
        return average(models, weights), state


class CountsRounds(ServerMean):
    rounds = 0

    def step(self, parameters: Any, models: Any, weights: Any, state: Any) -> Any:
        CountsRounds.rounds += 1
        mean = average(models, weights)
        return {name: value + CountsRounds.rounds for name, value in mean.items()}, state


class GrowsState(ServerMomentum):
    def step(self, *inputs: Any) -> Any:
        after, state = super().step(*inputs)
        return after, {**state, "more": torch.zeros(1)}


class Widens(ServerMean):
    def step(self, *inputs: Any) -> Any:
        after, state = super().step(*inputs)
        return {name: value.double() for name, value in after.items()}, state


class Blows(ServerMean):
    def step(self, *inputs: Any) -> Any:
        after, state = super().step(*inputs)
        return {name: value / 0.0 for name, value in after.items()}, state


class SaysNothing(ServerMean):
    needs_each_model = None  # type: ignore[assignment]


class SaysTheMeanWouldDo(ServerMedian):
    needs_each_model = False


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (SaysNothing, r"needs_each_model must be True or False, got None"),
        (SaysTheMeanWouldDo, r"step must make the same of the mean with needs_each_model = False, got"),
        (ReadsTwice, r"ReadsTwice\.step must answer .* at least one model"),
        (SumsWeights, r"step must not depend on the scale of the weights, got .* Divide by their sum"),
        (Spoils, r"step must leave its inputs alone, got another .*a"),
        (CountsRounds, r"step must remember nothing but its state"),
        (GrowsState, r"step's state must return tensors like .*, got .*more"),
        (Widens, r"step must return tensors like .*float32.*, got .*float64"),
        (Blows, r"step must return finite numbers"),
    ],
)
def test_a_broken_server_step_is_named_with_what_it_must_do(step: Any, message: str) -> None:
    check_server_step(ServerMomentum, momentum=0.5)
    assert complaint(message, check_server_step, step)


class CountsPadding(Classification):
    def loss(self, outputs: Tensor, batch: Any) -> Tensor:
        shifted = replace(batch, weights=torch.full_like(batch.weights, 1 / batch.weights.shape[1]))
        return super().loss(outputs, shifted)


class OneNumber(Classification):
    def loss(self, outputs: Tensor, batch: Any) -> Tensor:
        return super().loss(outputs, batch).mean()


class MixesDevices(Classification):
    def loss(self, outputs: Tensor, batch: Any) -> Tensor:
        own = super().loss(outputs, batch)
        return own + own.mean()


class MeanScore(Classification):
    def scores(self, outputs: Tensor, batch: Any) -> Tensor:
        return super().scores(outputs, batch).mean(1)


class PerCent(Classification):
    def scores(self, outputs: Tensor, batch: Any) -> Tensor:
        return 100 * super().scores(outputs, batch)


class WholeScores(Classification):
    def scores(self, outputs: Tensor, batch: Any) -> Tensor:
        return super().scores(outputs, batch).long()


class Detached(Classification):
    def loss(self, outputs: Tensor, batch: Any) -> Tensor:
        return super().loss(outputs, batch).detach()


class Cuts(Classification):
    def loss(self, outputs: Tensor, batch: Any) -> Tensor:
        outputs.clamp_(-1, 1)
        return super().loss(outputs, batch)


class ScoresOfOthers(Classification):
    def scores(self, outputs: Tensor, batch: Any) -> Tensor:
        return super().scores(outputs, batch).mean(0, keepdim=True).expand(outputs.shape[:2]).clone()


class Nameless(Classification):
    metric: Any = "accuracy"


class EndlessSlope(Regression):
    metric = Metric("mean_absolute_error", higher_is_better=False, is_share=False)

    def loss(self, outputs: Tensor, batch: Any) -> Tensor:
        return super().loss((outputs - outputs.detach()).abs().sqrt() + batch.targets, batch)


@pytest.mark.parametrize(
    ("task", "message"),
    [
        (CountsPadding, r"CountsPadding\.loss must not count padded samples, got .* Weigh the losses"),
        (OneNumber, r"loss must have shape \(devices,\), got \(\)"),
        (MixesDevices, r"loss (of a device must be its own|must not count padded)"),
        (MeanScore, r"scores must have shape \(devices, samples\), got \(3,\)"),
        (PerCent, r"scores of a share must lie in 0 to 1"),
        (WholeScores, r"scores must be finite real numbers"),
        (Detached, r"loss must be differentiable"),
        (Cuts, r"loss must leave its inputs alone"),
        (ScoresOfOthers, r"scores of a device must be its own"),
        (Nameless, r"metric must be a Metric, got accuracy"),
    ],
)
def test_a_broken_task_is_named_with_what_it_must_do(task: Any, message: str) -> None:
    assert complaint(message, check_task, task)


def test_a_loss_needs_a_finite_slope() -> None:
    assert complaint("loss must have a finite gradient", check_task, EndlessSlope, learns="values")


class Net(nn.Module):
    """Sums what it knows of the words of a text."""

    def __init__(self, num_outputs: int, *, num_words: int = 12) -> None:
        super().__init__()
        self.words = nn.Embedding(num_words, num_outputs)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.words(tokens).sum(1)


def test_models_without_faults_pass_by_factory_and_by_name() -> None:
    check_model(Net, input_shape=(5,), num_tokens=12)
    check_model("tests.testing.test_learning:Net", input_shape=(5,), num_tokens=30, num_words=30)
    check_model(lambda input_shape, num_outputs: Mlp(input_shape, num_outputs, (4,)))
    with pytest.raises(ModelError, match="failed in its forward"):
        check_model(Net, input_shape=(5,), num_words=3)


@dataclass(frozen=True)
class Stacked(Mlp):
    """A perceptron that a test breaks."""


class SeesOthers(Stacked):
    def outputs(self, parameters: Any, inputs: Tensor) -> Tensor:
        own = super().outputs(parameters, inputs)
        return own + own.mean(0)


class SeesNeighbours(Stacked):
    def outputs(self, parameters: Any, inputs: Tensor) -> Tensor:
        return super().outputs(parameters, inputs).cumsum(1)

    def to_module(self, parameters: Any) -> Any:
        plain = super().to_module(parameters)
        plain.register_forward_hook(lambda module, given, made: made.cumsum(0))
        return plain


class AnotherModule(Stacked):
    def to_module(self, parameters: Any) -> Any:
        return super().to_module({name: 2 * value for name, value in parameters.items()})


class TakesAnything(Stacked):
    def from_state_dict(self, state: Any) -> Any:
        return super().from_state_dict({name: v for name, v in state.items() if "another" not in name})


class ForgetsHalf(Stacked):
    def from_state_dict(self, state: Any) -> Any:
        return {name: 0.5 * value for name, value in super().from_state_dict(state).items()}


class OneMore(Stacked):
    def outputs(self, parameters: Any, inputs: Tensor) -> Tensor:
        own = super().outputs(parameters, inputs)
        return torch.cat([own, own[..., :1]], -1)


class Restless(Stacked):
    def initial_parameters(self, rng: Any) -> Any:
        return {name: value + torch.rand(1) for name, value in super().initial_parameters(rng).items()}


class Wide(Stacked):
    def initial_parameters(self, rng: Any) -> Any:
        return {name: value.double() for name, value in super().initial_parameters(rng).items()}


class Infinite(Stacked):
    def outputs(self, parameters: Any, inputs: Tensor) -> Tensor:
        return super().outputs(parameters, inputs) / 0.0


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (SeesOthers, r"outputs of a device must not depend on the others"),
        (SeesNeighbours, r"outputs of a sample must not depend on its neighbours"),
        (AnotherModule, r"outputs must be those of to_module, got .* Let to_module be"),
        (TakesAnything, r"from_state_dict must refuse another network's, got no error"),
        (ForgetsHalf, r"from_state_dict must give it back"),
        (OneMore, r"outputs must have shape \(3, 6, 3\), got \(3, 6, 4\)"),
        (Restless, r"initial_parameters must follow rng alone"),
        (Wide, r"initial_parameters must be plain float32"),
        (Infinite, r"outputs must be finite"),
    ],
)
def test_a_broken_model_is_named_with_what_it_must_do(model: Any, message: str) -> None:
    assert complaint(
        message, check_model, lambda input_shape, num_outputs: model(input_shape, num_outputs, (4,))
    )


def test_a_model_is_a_module_or_a_model() -> None:
    assert complaint("must return an nn.Module or a Model, got 3", check_model, lambda: 3)
