"""Whether a user's module can be trained here: tried on a few samples before a run begins."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from fedwave.errors import ModelError
from fedwave.learning.meta_gradient import meta_step
from fedwave.learning.parameters import Parameters

if TYPE_CHECKING:
    from fedwave.learning.models.base import Model

# A sample's outputs may differ by this much, relative to their size, between one batch and another: another
# order of summation does that; mixing samples does far more.
ROUNDING = 1e-3
# Two devices with three samples each take a step.
NUM_DEVICES, NUM_SAMPLES = 2, 3
NUM_EXAMPLES = NUM_DEVICES * NUM_SAMPLES


def refuse_unsuitable(module: nn.Module, name: str) -> None:
    """Raise for layers that cannot work here whatever their values."""
    for place, layer in module.named_modules():
        if isinstance(layer, nn.modules.batchnorm._BatchNorm):
            raise ModelError(
                f"model.kind {name} has a batch-normalisation layer ({place}), which mixes samples and keeps "
                "state outside the parameters. Use nn.GroupNorm or nn.LayerNorm instead."
            )
    for place, value in module.named_parameters():
        if is_lazy(value):
            raise ModelError(
                f"model.kind {name} has a lazy layer ({place}), whose size is not known yet. Give its size; "
                "the factory may take input_shape."
            )
    trained = {place: value for place, value in module.named_parameters() if value.requires_grad}
    if not trained:
        raise ModelError(
            f"model.kind {name} has no parameter to train. Return a module with parameters that require grad."
        )
    for place, value in trained.items():
        if value.dtype != torch.float32:
            raise ModelError(
                f"model.kind {name} has {place} of type {value.dtype}, must be torch.float32. Convert "
                "it with module.float()."
            )


def example_inputs(input_shape: tuple[int, ...]) -> Tensor:
    """Return normal numbers in the shape of samples, where there is no dataset yet."""
    return torch.randn(NUM_EXAMPLES, *input_shape, generator=torch.Generator().manual_seed(0))


def try_meta_step(model: Model, stacked: Parameters, samples: Tensor, num_outputs: int, name: str) -> None:
    """Take a meta-step with two devices; raise for outputs that cannot be trained or samples that mix."""
    inputs = samples.reshape(NUM_DEVICES, NUM_SAMPLES, *samples.shape[1:])
    inputs = inputs.to(next(iter(stacked.values())).device)

    def loss(parameters: Parameters, samples: Tensor) -> Tensor:
        outputs = model.outputs(parameters, samples)
        _require_outputs(outputs, samples, num_outputs, name)
        return torch.logsumexp(outputs, -1).mean(1) + outputs.square().mean((1, 2))

    try:
        meta_step(loss, stacked, inputs[:, :2], inputs, inner_lr=0.01, method="exact")
    except ModelError:
        raise
    except Exception as error:
        raise ModelError(
            f"model.kind {name} cannot be differentiated twice: {type(error).__name__}: {one_line(error)}. "
            "Use differentiable layers, or algorithm.rule = first-order with a module of its own."
        ) from error
    with torch.no_grad():
        first, second = model.outputs(stacked, inputs), model.outputs(stacked, inputs)
        if not torch.isfinite(first).all():
            raise ModelError(
                f"model.kind {name} returns infinite outputs or NaN for samples of the dataset, before any "
                "training. Rescale the inputs, or start from smaller weights."
            )
        _require_equal(
            first, second, name, "draws random numbers in its forward, so that a run would not repeat"
        )
        alone = torch.cat([model.outputs(stacked, inputs[:, i : i + 1]) for i in range(NUM_SAMPLES)], dim=1)
        _require_equal(first, alone, name, "mixes samples: a sample's outputs change with its neighbours")


def require_unchanged(before: Parameters, now: Parameters, name: str) -> None:
    """Raise if a forward has changed a buffer."""
    for key, value in now.items():
        if not torch.equal(value, before[key]):
            raise ModelError(
                f"model.kind {name} changes its buffer {key} in its forward, which devices cannot share. "
                "Keep what changes in parameters, or leave the update out in evaluation mode."
            )


def _require_outputs(outputs: Tensor, inputs: Tensor, num_outputs: int, name: str) -> None:
    expected = (*inputs.shape[:2], num_outputs)
    if tuple(outputs.shape) != expected:
        raise ModelError(
            f"model.kind {name} must return (samples, {num_outputs}) outputs, got {tuple(outputs.shape[1:])} "
            f"for {expected[1]} samples. Return one for each class or value to predict."
        )
    if not outputs.is_floating_point():
        raise ModelError(
            f"model.kind {name} must return real numbers, got {outputs.dtype}. Return the scores themselves, "
            "not the chosen class."
        )
    if not outputs.requires_grad:
        raise ModelError(
            f"model.kind {name} returns outputs that do not depend on its parameters (detached?). Leave out "
            "detach() and torch.no_grad() in its forward."
        )


def _require_equal(first: Tensor, second: Tensor, name: str, what: str) -> None:
    scale = float(first.abs().max()) + 1e-6
    if not float((first - second).abs().max()) <= ROUNDING * scale:
        raise ModelError(
            f"model.kind {name} {what}. Devices compute in stacks: make each sample stand alone."
        )


def one_line(error: BaseException) -> str:
    """Return an error's message without line breaks."""
    return " ".join(str(error).split())
