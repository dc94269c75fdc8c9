"""What the training loop asks of a model, the first weights of ours, and whether a state dict fits one."""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np
import torch
from torch import Tensor, nn

from fedwave.errors import ModelError
from fedwave.learning.parameters import Parameters
from fedwave.ram import require_memory

# The first weights and biases, as the paper's authors draw them.
WEIGHT_STD = 0.1
BIAS = 0.1
_ADVICE = "Give the model the kind and sizes of the one that was saved."


class Model(Protocol):
    """A network that runs many devices' copies of itself at once; a task says what the outputs mean."""

    def initial_parameters(self, rng: np.random.Generator) -> Parameters:
        """Return the first global model, theta^0."""
        ...

    def outputs(self, parameters: Parameters, inputs: Tensor) -> Tensor:
        """Return (devices, samples, outputs) of stacked ``parameters`` on stacked ``inputs``."""
        ...

    def to_module(self, parameters: Parameters) -> nn.Module:
        """Return one model as a plain ``nn.Module`` on inputs (samples, *shape), to deploy or to inspect."""
        ...

    def to_state_dict(self, parameters: Parameters) -> Parameters:
        """Return one model in the layout of ``to_module().state_dict()``, as in ``model.safetensors``."""
        ...

    def from_state_dict(self, state: Parameters) -> Parameters:
        """Return the model of which ``state`` is the state dict; refuse one that is not this network's."""
        ...


def truncated_normal(shape: tuple[int, ...], *, rng: np.random.Generator, std: float = WEIGHT_STD) -> Tensor:
    """Return a float32 tensor from N(0, std^2) truncated at two standard deviations, by redrawing."""
    require_memory(
        # The numbers while they are drawn; then weights, a gradient and a model of each chunk of devices.
        24 * math.prod(shape),
        what=f"a layer of shape {shape}",
        fix="Use fewer channels or units.",
    )
    values = rng.standard_normal(math.prod(shape))
    while True:
        outside = np.flatnonzero(np.abs(values) > 2.0)
        if outside.size == 0:
            return torch.from_numpy((std * values).astype(np.float32).reshape(shape))
        values[outside] = rng.standard_normal(outside.size)


def constant_bias(size: int) -> Tensor:
    """Return the initial bias of a layer."""
    return torch.full((size,), BIAS)


def require_layout(state: Parameters, like: Parameters) -> None:
    """Raise unless ``state`` has the names, shapes and types of ``like``."""
    _refuse_names("lacks", [name for name in like if name not in state])
    _refuse_names("has an unknown", [name for name in state if name not in like])
    for name, expected in like.items():
        if state[name].shape != expected.shape:
            raise ModelError(
                f"{name} of the state dict must have shape {tuple(expected.shape)}, got "
                f"{tuple(state[name].shape)}. {_ADVICE}"
            )
        if state[name].dtype != expected.dtype:
            raise ModelError(
                f"{name} of the state dict must be {expected.dtype}, got {state[name].dtype}. "
                "Convert the tensors before they are loaded."
            )


def _refuse_names(what: str, names: list[str]) -> None:
    if names:
        others = f" and {len(names) - 1} more" if len(names) > 1 else ""
        raise ModelError(f"The state dict {what} {names[0]}{others}. {_ADVICE}")
