"""Samples of a few devices, unequal in number: one by one, and as the padded batches of a stack."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from fedwave.learning import Batch

SMALL: dict[str, dict[str, tuple[int, ...]]] = {
    "cnn": {"channels": (3, 4, 5)},
    "mlp": {"hidden": (6,)},
    "softmax": {},
}  # options for quick models


@dataclass(frozen=True)
class Samples:
    """What one device holds, without padding."""

    inputs: Tensor  # (samples, *shape)
    targets: Tensor  # (samples,) classes or (samples, outputs) values


def class_samples(
    sizes: Sequence[int], shape: tuple[int, ...], num_classes: int, *, seed: int
) -> list[Samples]:
    generator = torch.Generator().manual_seed(seed)
    return [
        Samples(
            torch.randn(size, *shape, generator=generator),
            torch.randint(0, num_classes, (size,), generator=generator),
        )
        for size in sizes
    ]


def real_samples(
    sizes: Sequence[int], shape: tuple[int, ...], num_outputs: int, *, seed: int
) -> list[Samples]:
    generator = torch.Generator().manual_seed(seed)
    return [
        Samples(
            torch.randn(size, *shape, generator=generator),
            torch.randn(size, num_outputs, generator=generator),
        )
        for size in sizes
    ]


def padded(devices: Sequence[Samples], dtype: torch.dtype = torch.float32) -> Batch:
    """Return the devices' samples in one batch: the first sample fills up, with weight zero."""
    longest = max(len(own.targets) for own in devices)

    def fill(values: Tensor) -> Tensor:
        return torch.cat([values, values[:1].expand(longest - len(values), *values.shape[1:])])

    inputs = torch.stack([fill(own.inputs) for own in devices]).to(dtype)
    targets = torch.stack([fill(own.targets) for own in devices])
    weights = torch.zeros(len(devices), longest, dtype=dtype)
    for row, own in enumerate(devices):
        weights[row, : len(own.targets)] = 1.0 / len(own.targets)
    return Batch(inputs, targets.to(dtype) if targets.is_floating_point() else targets, weights)
