"""The paper's convolutional network (Sec. VII), for any image size and channel count."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from fedwave.learning.models.base import WEIGHT_STD, constant_bias, require_layout, truncated_normal
from fedwave.learning.models.fast_cnn import convolve_and_pool
from fedwave.learning.parameters import Parameters

NEGATIVE_SLOPE = 0.2  # LeakyReLU, as in the authors' earlier code


@dataclass(frozen=True)
class Cnn:
    """Blocks of 3x3 SAME convolution, LeakyReLU and 3x3 stride-2 SAME max-pool, then one linear layer.

    Parameters are kept as (out, 3, 3, in) and (features, outputs), as products on channels-last images take
    them; ``to_state_dict`` has torch's usual layout.
    """

    input_shape: tuple[int, int, int]  # channels, height, width
    num_outputs: int
    channels: tuple[int, ...]
    weight_std: float = WEIGHT_STD  # of the first weights
    takes_tokens: ClassVar[bool] = False

    @property
    def pooled_extent(self) -> tuple[int, int]:
        """Height and width after every pool: each halves the extent, rounding up."""
        _, height, width = self.input_shape
        for _ in self.channels:
            height, width = -(-height // 2), -(-width // 2)
        return height, width

    def initial_parameters(self, rng: np.random.Generator) -> Parameters:
        """Return weights from a truncated normal and biases of 0.1."""
        parameters: Parameters = {}
        draw = partial(truncated_normal, rng=rng, std=self.weight_std)
        before = self.input_shape[0]
        for index, after in enumerate(self.channels, start=1):
            drawn = draw((3, 3, before, after))
            parameters[f"conv{index}.weight"] = drawn.permute(3, 0, 1, 2).contiguous()
            parameters[f"conv{index}.bias"] = constant_bias(after)
            before = after
        height, width = self.pooled_extent
        parameters["linear.weight"] = draw((height * width * before, self.num_outputs))
        parameters["linear.bias"] = constant_bias(self.num_outputs)
        return parameters

    def outputs(self, parameters: Parameters, inputs: Tensor) -> Tensor:
        """Return (devices, samples, outputs)."""
        images = inputs.permute(0, 1, 3, 4, 2)
        for index in range(1, len(self.channels) + 1):
            images = convolve_and_pool(
                images, parameters[f"conv{index}.weight"], parameters[f"conv{index}.bias"], NEGATIVE_SLOPE
            )
        return torch.baddbmm(
            parameters["linear.bias"][:, None], images.flatten(2), parameters["linear.weight"]
        )

    def to_state_dict(self, parameters: Parameters) -> Parameters:
        """Return one model in torch's layout: (out, in, 3, 3) and (outputs, features in C, H, W order)."""
        state = dict(parameters)
        for index in range(1, len(self.channels) + 1):
            name = f"conv{index}.weight"
            state[name] = parameters[name].permute(0, 3, 1, 2).contiguous()
        height, width = self.pooled_extent
        linear = parameters["linear.weight"].reshape(height, width, -1, self.num_outputs)
        state["linear.weight"] = linear.permute(3, 2, 0, 1).reshape(self.num_outputs, -1).contiguous()
        return state

    def from_state_dict(self, state: Parameters) -> Parameters:
        """Return the model of which ``state`` is the state dict."""
        require_layout(state, self.to_state_dict(self.initial_parameters(np.random.default_rng(0))))
        parameters = dict(state)
        for index in range(1, len(self.channels) + 1):
            name = f"conv{index}.weight"
            parameters[name] = state[name].permute(0, 2, 3, 1).contiguous()
        linear = state["linear.weight"].reshape(self.num_outputs, -1, *self.pooled_extent)
        parameters["linear.weight"] = linear.permute(2, 3, 1, 0).reshape(-1, self.num_outputs).contiguous()
        return parameters

    def to_module(self, parameters: Parameters) -> nn.Module:
        """Return one model as a plain torch module."""
        module = CnnModule(self.input_shape[0], self.channels, self.pooled_extent, self.num_outputs)
        module.to(parameters["linear.weight"].dtype).load_state_dict(self.to_state_dict(parameters))
        return module


class CnnModule(nn.Module):
    """The same network from torch's own layers, on images (samples, channels, height, width)."""

    def __init__(
        self, in_channels: int, channels: Sequence[int], pooled_extent: tuple[int, int], num_outputs: int
    ) -> None:
        super().__init__()
        self.num_layers = len(channels)
        before = in_channels
        for index, after in enumerate(channels, start=1):
            self.add_module(f"conv{index}", nn.Conv2d(before, after, 3, padding=1))
            before = after
        self.linear = nn.Linear(pooled_extent[0] * pooled_extent[1] * before, num_outputs)

    def forward(self, images: Tensor) -> Tensor:
        """Return (samples, outputs)."""
        for index in range(1, self.num_layers + 1):
            images = F.leaky_relu(self.get_submodule(f"conv{index}")(images), NEGATIVE_SLOPE)
            top, left = images.shape[2] % 2, images.shape[3] % 2  # TensorFlow's SAME rule
            images = F.max_pool2d(F.pad(images, (left, 1, top, 1), value=float("-inf")), 3, stride=2)
        outputs: Tensor = self.linear(images.flatten(1))
        return outputs
