"""No skew: each device's samples are a uniform draw from the whole dataset."""

from __future__ import annotations

import numpy as np

from fedwave.errors import DataError, require_count
from fedwave.units import IntArray


def iid_counts(
    supply: IntArray,
    num_devices: int = 100,
    *,
    rng: np.random.Generator,
    samples_per_device: int | None = None,
) -> IntArray:
    """Return how many samples of each class each device gets when labels play no part.

    Every device has ``samples_per_device`` samples, by default an equal share of the dataset.
    """
    size = require_total(supply, num_devices, samples_per_device)
    num_classes = len(supply)
    shuffled = rng.permutation(np.repeat(np.arange(num_classes), supply))[: num_devices * size]
    cell = np.repeat(np.arange(num_devices), size) * num_classes + shuffled
    return np.bincount(cell, minlength=num_devices * num_classes).reshape(num_devices, num_classes)


def require_total(supply: IntArray, num_devices: int, samples_per_device: int | None) -> int:
    """Return the samples per device (an equal share when None), or say that the dataset is too small."""
    total = int(supply.sum())
    size = max(1, total // num_devices) if samples_per_device is None else samples_per_device
    require_count("samples_per_device", size, at_least=1)
    if num_devices * size > total:
        raise DataError(
            f"{num_devices} devices with {size} samples each need {num_devices * size} samples but the "
            f"dataset has {total}. Use at most {total // size} devices, or fewer samples per device."
        )
    return size
