"""Samples that are not as they should be: what a device with a fault has instead of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from fedwave.data.dataset import Dataset
from fedwave.data.dealing import DeviceData
from fedwave.errors import ConfigError
from fedwave.units import IntArray

FaultKind = Literal["random-labels", "upside-down", "liars"]


def faulty_positions(num_devices: int, num_faulty: int, *, rng: np.random.Generator) -> IntArray:
    """Return which of the devices are at fault, sorted; more with a larger number, none exchanged."""
    if num_faulty > num_devices:
        raise ConfigError(
            f"faults.num_devices must be at most the {num_devices} training devices, got {num_faulty}. "
            "Use fewer."
        )
    return np.sort(rng.permutation(num_devices)[:num_faulty]).astype(np.int64)


def with_faults(
    data: Dataset, devices: Sequence[DeviceData], kind: FaultKind, *, rng: np.random.Generator
) -> Dataset:
    """Return the dataset in which the samples of these devices are spoilt; liars have good ones."""
    if kind == "liars" or not devices:
        return data
    own = np.concatenate([samples for device in devices for samples in (device.support, device.query)])
    if kind == "random-labels":
        if data.targets is not None:
            raise ConfigError(
                'faults.kind = "random-labels" needs a dataset with classes, got real targets. Use another.'
            )
        labels = data.labels.copy()
        labels[own] = rng.integers(data.num_classes, size=len(own))
        return replace(data, labels=labels)
    if data.inputs.ndim < 3:
        raise ConfigError(
            f'faults.kind = "upside-down" needs images, got inputs of shape {data.inputs.shape[1:]}. Use '
            "another."
        )
    inputs = data.inputs.copy()
    inputs[own] = np.flip(inputs[own], axis=-2)
    return replace(data, inputs=inputs)
