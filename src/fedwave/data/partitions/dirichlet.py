"""Label skew by a Dirichlet distribution: each device has its own mixture of the classes."""

from __future__ import annotations

import math

import numpy as np

from fedwave.data.partitions.iid import require_total
from fedwave.errors import ConfigError
from fedwave.units import FloatArray, IntArray


def dirichlet_counts(
    supply: IntArray,
    num_devices: int = 100,
    *,
    rng: np.random.Generator,
    concentration: float = 0.5,
    samples_per_device: int | None = None,
) -> IntArray:
    """Return how many samples of each class each device gets.

    Every device has ``samples_per_device`` samples (by default an equal share of the dataset). Its class
    mixture is drawn from a symmetric Dirichlet distribution over the classes in the dataset, and its counts
    from that mixture. Where a class has run out, the mixture is renormalised over the classes left. A small
    ``concentration`` gives devices with few classes; a large one approaches equal shares of each class.
    """
    if not (math.isfinite(concentration) and concentration > 0):
        raise ConfigError(
            f"concentration must be > 0, got {concentration}. Small values (0.1) skew, large ones mix."
        )
    size = require_total(supply, num_devices, samples_per_device)
    present = np.flatnonzero(supply)
    mixture = rng.dirichlet(np.full(len(present), concentration), size=num_devices)
    wanted = rng.multinomial(size, mixture).astype(np.int64)
    counts = np.zeros((num_devices, len(supply)), dtype=np.int64)
    counts[:, present] = _fit_to_supply(wanted, mixture, supply[present], rng=rng)
    return counts


def _fit_to_supply(
    wanted: IntArray, mixture: FloatArray, supply: IntArray, *, rng: np.random.Generator
) -> IntArray:
    """Return ``wanted``, row sums kept, with what a class cannot give any more drawn from the others."""
    granted = wanted.copy()
    if np.all(wanted.sum(axis=0) <= supply):
        return granted
    left = supply.copy()
    for device, row in enumerate(granted):
        size = row.sum()
        np.minimum(row, left, out=row)
        left -= row
        while (missing := size - row.sum()) > 0:
            weight = np.where(left > 0, mixture[device], 0.0)
            if weight.sum() <= 0:  # the device's own classes are all gone
                weight = left.astype(np.float64)
            extra = np.minimum(rng.multinomial(missing, weight / weight.sum()), left)
            row += extra
            left -= extra
    return granted
