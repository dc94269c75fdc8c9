"""Federated learning as a textbook writes it: torch's own layers, one device after another, in float64.

Nothing here is stacked, padded, chunked or threaded, and nothing but models and samples comes from fedwave.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call

from fedwave.data import Dataset, DeviceData

Loss = Callable[[Tensor, Tensor], Tensor]
Theta = dict[str, Tensor]


@dataclass(frozen=True)
class PlainDevice:
    """The samples of one device in double precision."""

    support: tuple[Tensor, Tensor]
    query: tuple[Tensor, Tensor]

    @property
    def everything(self) -> tuple[Tensor, Tensor]:
        return (
            torch.cat([self.support[0], self.query[0]]),
            torch.cat([self.support[1], self.query[1]]),
        )

    @property
    def num_samples(self) -> int:
        return len(self.support[0]) + len(self.query[0])


def plain_devices(
    data: Dataset, devices: Sequence[DeviceData], *, standardise: str = "pixel"
) -> list[PlainDevice]:
    """Return the devices' samples, standardised over the whole dataset or divided by 255 (bytes) or 1."""
    values = data.inputs.astype(np.float64)
    if standardise == "pixel":
        values = (values - values.mean(axis=0)) / (values.std(axis=0) + 0.001)
    elif data.inputs.dtype == np.uint8:
        values = values / 255
    inputs = torch.from_numpy(values)
    targets = torch.from_numpy(data.labels if data.targets is None else data.targets.astype(np.float64))
    return [
        PlainDevice(
            (inputs[device.support], targets[device.support]), (inputs[device.query], targets[device.query])
        )
        for device in devices
    ]


def theta_of(module: nn.Module) -> Theta:
    return {name: value.detach().clone().double() for name, value in module.named_parameters()}


def gradient_of(
    module: nn.Module, theta: Theta, samples: tuple[Tensor, Tensor], loss: Loss, *, create_graph: bool = False
) -> tuple[Tensor, Theta]:
    """Return the loss at ``theta`` and its gradient."""
    value = loss(functional_call(module, theta, (samples[0],)), samples[1])
    gradients = torch.autograd.grad(value, list(theta.values()), create_graph=create_graph)
    return value, dict(zip(theta, gradients, strict=True))


def leaves(theta: Theta) -> Theta:
    return {name: value.detach().clone().requires_grad_() for name, value in theta.items()}


def moved(theta: Theta, gradient: Theta, rate: float) -> Theta:
    return {name: value - rate * gradient[name] for name, value in theta.items()}


def local_gradient(
    module: nn.Module, theta: Theta, device: PlainDevice, gradient: str, inner_lr: float, loss: Loss
) -> tuple[float, Theta]:
    """Return the loss that a device descends and the gradient that it takes for it, Eq. (3)."""
    start = leaves(theta)
    if gradient == "plain":
        value, slope = gradient_of(module, start, device.everything, loss)
        return float(value.detach()), slope
    _, inner = gradient_of(module, start, device.support, loss, create_graph=True)
    adapted = moved(start, inner, inner_lr)
    if gradient == "first-order":  # the gradient at the adapted model, taken for one at the model itself
        value, slope = gradient_of(module, leaves(adapted), device.query, loss)
        return float(value.detach()), slope
    if gradient == "exact-query":  # Eq. (3) as it stands, with D'' = D'
        value, slope = gradient_of(module, leaves(adapted), device.query, loss)
        _, curved = gradient_of(module, start, device.query, loss, create_graph=True)
        along = sum((curved[name] * slope[name]).sum() for name in start)
        product = torch.autograd.grad(along, list(start.values()))
        return float(value.detach()), moved(slope, dict(zip(start, product, strict=True)), inner_lr)
    value = loss(functional_call(module, adapted, (device.query[0],)), device.query[1])
    slopes = torch.autograd.grad(value, list(start.values()))  # hessian-free is the same in the limit
    return float(value.detach()), dict(zip(start, slopes, strict=True))


@dataclass(frozen=True)
class PlainUpdate:
    """What a device makes of the global model."""

    theta: Theta
    norms: list[float]
    loss: float  # before the first step

    def contribution(self, num_samples: int, similarity_penalty: float, variance_penalty: float) -> float:
        """Return u of Eq. (21)."""
        weight = similarity_penalty + variance_penalty / math.sqrt(num_samples)
        return sum(norm**2 - 2 * weight * norm for norm in self.norms)


def plain_update(
    module: nn.Module,
    theta: Theta,
    device: PlainDevice,
    *,
    gradient: str,
    inner_lr: float,
    meta_lr: float,
    num_local_steps: int = 1,
    loss: Loss = F.cross_entropy,
) -> PlainUpdate:
    """Return a device's local model after its steps, Alg. 1 lines 3-10."""
    own, norms, losses = theta, [], []
    for _ in range(num_local_steps):
        value, slope = local_gradient(module, own, device, gradient, inner_lr, loss)
        norms.append(math.sqrt(sum(float(part.square().sum()) for part in slope.values())))
        losses.append(value)
        own = {name: part.detach() for name, part in moved(own, slope, meta_lr).items()}
    return PlainUpdate(own, norms, losses[0])


def plain_evaluation(
    module: nn.Module,
    theta: Theta,
    device: PlainDevice,
    *,
    num_steps: int,
    inner_lr: float,
    loss: Loss = F.cross_entropy,
) -> tuple[float, float]:
    """Return query loss, and accuracy or mean absolute error, after adapting to the support set."""
    own = copy.deepcopy(theta)
    for _ in range(num_steps):
        _, slope = gradient_of(module, leaves(own), device.support, loss)
        own = {name: part.detach() for name, part in moved(own, slope, inner_lr).items()}
    with torch.no_grad():
        outputs = functional_call(module, own, (device.query[0],))
        value = float(loss(outputs, device.query[1]))
    if loss is F.cross_entropy:
        pairs = zip(outputs.tolist(), device.query[1].tolist(), strict=True)
        right = [max(range(len(row)), key=row.__getitem__) == target for row, target in pairs]
        return value, sum(right) / len(right)
    return value, float(np.abs(outputs.numpy() - device.query[1].numpy()).mean())


@dataclass
class PlainServer:
    """Selection and server step of a run, by hand. ``history`` is who was selected in each round."""

    policy: str
    num_selected: int
    seed: int
    num_samples: Any
    momentum: float | None = None

    def __post_init__(self) -> None:
        self.history: list[list[int]] = []
        self.velocity: Theta = {}

    def asked(self, round_index: int) -> list[int]:
        everyone = list(range(len(self.num_samples)))
        luck = np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(2, round_index)))
        if self.policy == "uniform":
            return sorted(luck.choice(len(everyone), self.num_selected, replace=False).tolist())
        if self.policy == "power-of-choice":
            share = np.array(self.num_samples) / sum(self.num_samples)
            drawn = luck.choice(len(everyone), 2 * self.num_selected, replace=False, p=share)
            return sorted(drawn.tolist())
        if self.policy == "round-robin":
            # A list of who is next; whoever had a turn goes to its end, lower indices first.
            waiting = everyone
            for chosen in self.history:
                waiting = [i for i in waiting if i not in chosen] + sorted(chosen)
            return sorted(waiting[: self.num_selected])
        return everyone

    def select(self, asked: list[int], contribution: list[float], loss: list[float]) -> list[int]:
        score = {"top-contribution": contribution, "power-of-choice": loss}.get(self.policy)
        order = range(len(asked))
        ranked = order if score is None else sorted(order, key=lambda i: -score[i])
        self.history.append(sorted(asked[i] for i in list(ranked)[: self.num_selected]))
        return self.history[-1]

    def step(self, theta: Theta, models: list[Theta]) -> Theta:
        mean = {name: sum(model[name] for model in models) / len(models) for name in theta}
        if self.momentum is None:
            return mean
        self.velocity = {
            name: self.momentum * self.velocity.get(name, torch.zeros_like(value)) + (value - mean[name])
            for name, value in theta.items()
        }
        return {name: value - self.velocity[name] for name, value in theta.items()}
