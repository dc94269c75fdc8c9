"""A multi-layer perceptron; without hidden layers it is softmax (or linear) regression."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from fedwave.learning.models.base import WEIGHT_STD, constant_bias, require_layout, truncated_normal
from fedwave.learning.parameters import Parameters


@dataclass(frozen=True)
class Mlp:
    """Linear layers with ReLU between them. Weights are kept as (in, out)."""

    input_shape: tuple[int, ...]
    num_outputs: int
    hidden: tuple[int, ...]
    weight_std: float = WEIGHT_STD  # of the first weights
    takes_tokens: ClassVar[bool] = False

    @property
    def widths(self) -> tuple[int, ...]:
        """The size of every layer, input and output included."""
        return (math.prod(self.input_shape), *self.hidden, self.num_outputs)

    def initial_parameters(self, rng: np.random.Generator) -> Parameters:
        """Return weights from a truncated normal and biases of 0.1."""
        parameters: Parameters = {}
        for index, (before, after) in enumerate(itertools.pairwise(self.widths), start=1):
            parameters[f"linear{index}.weight"] = truncated_normal(
                (before, after), rng=rng, std=self.weight_std
            )
            parameters[f"linear{index}.bias"] = constant_bias(after)
        return parameters

    def outputs(self, parameters: Parameters, inputs: Tensor) -> Tensor:
        """Return (devices, samples, outputs)."""
        values = inputs.flatten(2)
        num_layers = len(self.widths) - 1
        for index in range(1, num_layers + 1):
            bias = parameters[f"linear{index}.bias"][:, None]
            values = torch.baddbmm(bias, values, parameters[f"linear{index}.weight"])
            if index < num_layers:
                values = F.relu(values)
        return values

    def to_state_dict(self, parameters: Parameters) -> Parameters:
        """Return one model in torch's layout: weights (out, in)."""
        return {
            name: value.T.contiguous() if name.endswith("weight") else value
            for name, value in parameters.items()
        }

    def from_state_dict(self, state: Parameters) -> Parameters:
        """Return the model of which ``state`` is the state dict."""
        require_layout(state, self.to_state_dict(self.initial_parameters(np.random.default_rng(0))))
        return {
            name: value.T.contiguous() if name.endswith("weight") else value for name, value in state.items()
        }

    def to_module(self, parameters: Parameters) -> nn.Module:
        """Return one model as a plain torch module."""
        module = MlpModule(self.widths)
        module.to(next(iter(parameters.values())).dtype).load_state_dict(self.to_state_dict(parameters))
        return module


class MlpModule(nn.Module):
    """The same network from torch's own layers, on inputs (samples, *shape)."""

    def __init__(self, widths: tuple[int, ...]) -> None:
        super().__init__()
        self.num_layers = len(widths) - 1
        for index, (before, after) in enumerate(itertools.pairwise(widths), start=1):
            self.add_module(f"linear{index}", nn.Linear(before, after))

    def forward(self, inputs: Tensor) -> Tensor:
        """Return (samples, outputs)."""
        values = inputs.flatten(1)
        for index in range(1, self.num_layers + 1):
            values = self.get_submodule(f"linear{index}")(values)
            if index < self.num_layers:
                values = F.relu(values)
        return values
