"""NUFM, Alg. 1 of the paper, as a textbook writes it: one device after another, torch's own layers, float64.

fedwave's rounds stack, pad and thread devices, in float32. Tests hold them equal to this file, round by round
and part by part; nothing but models and samples comes from fedwave here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call

from fedwave import load_experiment
from fedwave.data import Dataset, DeviceData
from fedwave.experiments.build import build_simulation

Theta = dict[str, Tensor]
Samples = tuple[Tensor, Tensor]  # inputs and targets
Loss = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class Device:
    """The samples of one device."""

    support: Samples  # D: a local step adapts to it
    query: Samples  # D': what the adapted model is judged by

    @property
    def num_samples(self) -> int:
        return len(self.support[0]) + len(self.query[0])


@dataclass(frozen=True)
class Update:
    """What a device makes of the global model."""

    theta: Theta
    norms: list[float]  # of its gradient at each local step
    loss: float  # before the first step


def algorithm_1(
    module: nn.Module,
    devices: Sequence[Device],
    *,
    num_selected: int,
    similarity_penalty: float = 1.0,
    variance_penalty: float = 1.0,
    **steps: Any,
) -> Iterator[tuple[list[int], Theta]]:
    """Yield the devices that upload and the next global model, round after round."""
    theta = theta_of(module)
    while True:
        updates = [local_update(module, theta, device, **steps) for device in devices]  # lines 3-10
        reported = [  # line 11
            contribution(update.norms, device.num_samples, similarity_penalty, variance_penalty)
            for update, device in zip(updates, devices, strict=True)
        ]
        ranked = sorted(range(len(devices)), key=lambda i: -reported[i])
        selected = sorted(ranked[:num_selected])  # line 12, Eq. (22)
        theta = {  # line 13, Eq. (6)
            name: torch.stack([updates[i].theta[name] for i in selected]).mean(0) for name in theta
        }
        yield selected, theta


def contribution(
    norms: Sequence[float], num_samples: int, similarity_penalty: float, variance_penalty: float
) -> float:
    """Return u_i, Eq. (21)."""
    weight = similarity_penalty + variance_penalty / math.sqrt(num_samples)
    return sum(norm**2 - 2 * weight * norm for norm in norms)


def meta_gradient(
    module: nn.Module, theta: Theta, device: Device, inner_lr: float, loss: Loss
) -> tuple[Tensor, Theta]:
    """Return F_i, the loss after a step on the support set, Eq. (1), and its gradient, Eq. (3)."""
    start = leaves(theta)
    _, inner = gradient_of(module, start, device.support, loss, create_graph=True)
    adapted = moved(start, inner, inner_lr)
    value = loss(functional_call(module, adapted, (device.query[0],)), device.query[1])
    slopes = torch.autograd.grad(value, list(start.values()))  # through the inner step
    return value.detach(), dict(zip(start, slopes, strict=True))


def local_update(
    module: nn.Module,
    theta: Theta,
    device: Device,
    *,
    inner_lr: float,
    meta_lr: float,
    num_local_steps: int = 1,
    loss: Loss = F.cross_entropy,
    gradient: Callable[..., tuple[Tensor, Theta]] = meta_gradient,
) -> Update:
    """Return a device's model after its local steps, Alg. 1 lines 3-10."""
    own, norms, losses = theta, [], []
    for _ in range(num_local_steps):
        value, slope = gradient(module, own, device, inner_lr, loss)
        norms.append(math.sqrt(sum(float(part.square().sum()) for part in slope.values())))
        losses.append(float(value))
        own = {name: part.detach() for name, part in moved(own, slope, meta_lr).items()}  # Eq. (2)
    return Update(own, norms, losses[0])


def evaluation(
    module: nn.Module,
    theta: Theta,
    device: Device,
    *,
    num_steps: int,
    inner_lr: float,
    loss: Loss = F.cross_entropy,
) -> tuple[float, float]:
    """Return query loss, and accuracy or mean absolute error, after adapting to the support set."""
    for _ in range(num_steps):
        _, slope = gradient_of(module, leaves(theta), device.support, loss)
        theta = moved(theta, slope, inner_lr)
    with torch.no_grad():
        outputs = functional_call(module, theta, (device.query[0],))
    targets = device.query[1]
    right = outputs.argmax(1) == targets if loss is F.cross_entropy else (outputs - targets).abs()
    return float(loss(outputs, targets)), float(right.double().mean())


def gradient_of(
    module: nn.Module, theta: Theta, samples: Samples, loss: Loss, *, create_graph: bool = False
) -> tuple[Tensor, Theta]:
    """Return the loss at ``theta`` and its gradient."""
    value = loss(functional_call(module, theta, (samples[0],)), samples[1])
    slopes = torch.autograd.grad(value, list(theta.values()), create_graph=create_graph)
    return value, dict(zip(theta, slopes, strict=True))


def theta_of(module: nn.Module) -> Theta:
    """Return a module's parameters in double precision."""
    return {name: value.detach().clone().double() for name, value in module.named_parameters()}


def leaves(theta: Theta) -> Theta:
    """Return the same parameters, to be differentiated by."""
    return {name: value.detach().clone().requires_grad_() for name, value in theta.items()}


def moved(theta: Theta, gradient: Theta, rate: float) -> Theta:
    """Return the parameters after a step down the gradient."""
    return {name: value - rate * gradient[name] for name, value in theta.items()}


def plain_devices(
    data: Dataset, devices: Sequence[DeviceData], *, standardise: str = "pixel"
) -> list[Device]:
    """Return the devices' samples, standardised over the whole dataset or divided by 255 (bytes) or 1."""
    values = data.inputs.astype(np.float64)
    if standardise == "pixel":
        values = (values - values.mean(axis=0)) / (values.std(axis=0) + 0.001)
    elif data.inputs.dtype == np.uint8:
        values = values / 255
    inputs = torch.from_numpy(values)
    targets = torch.from_numpy(data.labels if data.targets is None else data.targets.astype(np.float64))
    return [
        Device(*((inputs[samples], targets[samples]) for samples in (device.support, device.query)))
        for device in devices
    ]


def main() -> None:
    """Let both play the same rounds."""
    simulation = build_simulation(load_experiment("digits/nufm", ["num_rounds=5"]))
    state, train = simulation.initial_state(), simulation.train
    module = simulation.model.to_module(state.parameters).double()
    devices = plain_devices(train.dataset, train.devices)
    plain = algorithm_1(module, devices, inner_lr=0.02, meta_lr=0.02, num_selected=10)
    with closing(simulation.open_devices()) as fast:
        for _ in range(simulation.num_rounds):
            selected, theta = next(plain)
            state, record = simulation.run_round(state, fast)
            ours = simulation.model.to_state_dict(state.parameters)
            apart = max(float((theta[name] - ours[name]).abs().max()) for name in theta)
            same = record.columns["selected_devices"] == train.device_ids[selected].tolist()
            print(f"round {record.round_index}: same devices: {same}, models at most {apart:.0e} apart")


if __name__ == "__main__":
    main()
