"""A dataset that is computed: two half circles that interlock. ``moons.toml`` names it."""

from __future__ import annotations

import numpy as np

from fedwave.data import Dataset, dataset_from_arrays


def two_moons(seed: int, *, num_samples: int = 1000, noise: float = 0.1) -> Dataset:
    """Return points in the plane; ``seed`` is filled in, the others are options."""
    rng = np.random.default_rng(seed)
    labels = np.arange(num_samples) % 2
    angle = np.pi * (rng.random(num_samples) + labels)
    points = np.stack([np.cos(angle) + labels, np.sin(angle) + labels / 2], axis=1)
    points += noise * rng.normal(size=points.shape)
    return dataset_from_arrays(points, labels, name="moons", class_names=["upper", "lower"])
