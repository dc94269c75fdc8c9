"""Modules as users write them, importable by name: good ones, awkward ones and bad ones."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor, nn

from fedwave.learning.models import Mlp


def small_user_net(input_shape: tuple[int, ...], num_classes: int) -> nn.Module:
    return nn.Sequential(
        nn.Flatten(),
        nn.Linear(math.prod(input_shape), 7),
        nn.Tanh(),
        nn.Dropout(0.5),
        nn.Linear(7, num_classes),
    )


class DataDependentNet(nn.Module):
    """vmap cannot map this: its control flow looks at its weights."""

    def __init__(self, input_shape: tuple[int, ...], num_outputs: int) -> None:
        super().__init__()
        self.linear = nn.Linear(math.prod(input_shape), num_outputs)

    def forward(self, inputs: Tensor) -> Tensor:
        outputs: Tensor = self.linear(inputs.flatten(1))
        return outputs * 2 if float(self.linear.weight.detach().sum()) > 0 else outputs


class RandomFeatures(nn.Module):
    """A fixed projection that numpy draws anew at every build, and a scale that the state dict leaves out."""

    projection: Tensor
    scale: Tensor

    def __init__(self, input_shape: tuple[int, ...], num_outputs: int) -> None:
        super().__init__()
        drawn = np.random.default_rng().standard_normal((math.prod(input_shape), 6))
        self.register_buffer("projection", torch.tensor(drawn, dtype=torch.float32))
        self.register_buffer("scale", torch.tensor(float(drawn.max())), persistent=False)
        self.linear = nn.Linear(6, num_outputs)

    def forward(self, inputs: Tensor) -> Tensor:
        outputs: Tensor = self.linear(torch.cos(inputs.flatten(1) @ self.projection) * self.scale)
        return outputs


class NestedBuffers(nn.Module):
    """Buffers below the top of the module, one of them under two names."""

    def __init__(self, input_shape: tuple[int, ...], num_outputs: int) -> None:
        super().__init__()
        self.first = RandomFeatures(input_shape, num_outputs)
        self.second = RandomFeatures(input_shape, num_outputs)
        self.second.projection = self.first.projection

    def forward(self, inputs: Tensor) -> Tensor:
        outputs: Tensor = self.first(inputs) + self.second(inputs)
        return outputs


def stacked_net(input_shape: tuple[int, ...], num_outputs: int, *, width: int = 5) -> Mlp:
    """A model that runs many devices itself."""
    return Mlp(input_shape, num_outputs, (width,))


class TiedNet(nn.Module):
    """Two layers with one weight."""

    def __init__(self, input_shape: tuple[int, ...], num_outputs: int) -> None:
        super().__init__()
        size = math.prod(input_shape)
        self.encode = nn.Linear(size, size)
        self.again = nn.Linear(size, size)
        self.again.weight = self.encode.weight
        self.decide = nn.Linear(size, num_outputs)

    def forward(self, inputs: Tensor) -> Tensor:
        outputs: Tensor = self.decide(torch.tanh(self.again(torch.tanh(self.encode(inputs.flatten(1))))))
        return outputs


nameless_net = lambda input_shape, num_outputs: nn.Sequential(  # noqa: E731 - has no name to pickle
    nn.Flatten(), nn.Linear(math.prod(input_shape), num_outputs)
)


def net_with_options(**offered: object) -> nn.Module:
    assert offered == {"input_shape": (1, 2, 2), "num_outputs": 3, "num_classes": 3}
    return nn.Sequential(nn.Flatten(), nn.Linear(4, 3))


def batch_norm_net(input_shape: tuple[int, ...], num_classes: int) -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.BatchNorm1d(math.prod(input_shape)), nn.Linear(4, num_classes))


def not_a_module(num_classes: int) -> int:
    return num_classes


def failing_factory() -> nn.Module:
    raise RuntimeError("no weights\nat hand")


def wrong_outputs(input_shape: tuple[int, ...]) -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(math.prod(input_shape), 99))


def wrong_inputs() -> nn.Module:
    return nn.Linear(5, 3)


class TextNet(nn.Module):
    """A text classifier: the mean of the words' vectors, then a linear layer."""

    NUM_WORDS = 30

    def __init__(self, num_classes: int) -> None:
        super().__init__()
        self.words = nn.Embedding(self.NUM_WORDS, 8)
        self.decide = nn.Linear(8, num_classes)

    def forward(self, tokens: Tensor) -> Tensor:
        outputs: Tensor = self.decide(self.words(tokens).mean(1))
        return outputs


class MixingTextNet(TextNet):
    """Each text is judged beside the others of its batch."""

    def forward(self, tokens: Tensor) -> Tensor:
        outputs: Tensor = super().forward(tokens)
        return outputs - outputs.mean(0, keepdim=True)


class NoisyTextNet(TextNet):
    """It drops words at random, also in evaluation mode."""

    def forward(self, tokens: Tensor) -> Tensor:
        outputs: Tensor = self.decide((self.words(tokens) * torch.rand(tokens.shape[1], 1)).mean(1))
        return outputs
