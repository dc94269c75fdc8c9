"""Model parameters as a dict of tensors, for one model or for a stack of devices' models.

A *stacked* dict gives every tensor a leading device axis. Devices never interact, so the gradient of the
summed losses with respect to the stack is the stack of the devices' own gradients.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from fedwave.learning.one_core import one_core

Parameters = dict[str, Tensor]


def stack_copies(parameters: Parameters, num_devices: int) -> Parameters:
    """Return the same model for every device, as views: no memory is copied."""
    return {name: value.expand(num_devices, *value.shape) for name, value in parameters.items()}


def unstack(stacked: Parameters, position: int) -> Parameters:
    """Return a copy of one device's model that does not keep the stack alive."""
    return {name: value[position].clone() for name, value in stacked.items()}


def with_gradients(parameters: Parameters) -> Parameters:
    """Return the same values as leaves that autograd differentiates."""
    return {name: value.detach().requires_grad_() for name, value in parameters.items()}


def step(parameters: Parameters, gradient: Parameters, learning_rate: float) -> Parameters:
    """Return the parameters after one step of plain gradient descent."""
    return {name: torch.sub(value, gradient[name], alpha=learning_rate) for name, value in parameters.items()}


def norm(parameters: Parameters, *, is_stacked: bool) -> Tensor:
    """Return the Euclidean norm over all parameters: a scalar, or one entry per device of a stack."""
    parts = [
        torch.linalg.vector_norm(value.flatten(1) if is_stacked else value.flatten(), dim=-1)
        for value in parameters.values()
    ]
    length: Tensor = torch.linalg.vector_norm(torch.stack(parts), dim=0)
    return length


def distance(one: Parameters, other: Parameters) -> float:
    """Return the Euclidean distance between two models, summed in float64, alike on any number of cores."""
    with one_core():
        squares = [
            float(torch.sum((value.to(torch.float64) - other[name].to(torch.float64)) ** 2))
            for name, value in one.items()
        ]
    return math.sqrt(math.fsum(squares))


def num_parameters(parameters: Parameters) -> int:
    """Return how many numbers a model has."""
    return sum(value.numel() for value in parameters.values())
