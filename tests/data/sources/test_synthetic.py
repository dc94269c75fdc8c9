from __future__ import annotations

import re

import numpy as np
import pytest

from fedwave.data import load_dataset
from fedwave.errors import ConfigError


def nearest_centre_accuracy(dataset, num_train: int) -> float:
    """Accuracy of the simplest learner there is: the nearest class mean."""
    flat = dataset.inputs.reshape(len(dataset.inputs), -1).astype(np.float64)
    train, labels = flat[:num_train], dataset.labels[:num_train]
    centres = np.stack([train[labels == label].mean(axis=0) for label in range(dataset.num_classes)])
    distances = ((flat[num_train:, None] - centres) ** 2).sum(axis=2)
    return float((distances.argmin(axis=1) == dataset.labels[num_train:]).mean())


@pytest.mark.parametrize("shape", [(1, 28, 28), (3, 9, 5), (20,)])
def test_the_classes_can_be_learned(shape):
    dataset = load_dataset("synthetic", num_samples=600, num_classes=6, shape=shape)
    assert nearest_centre_accuracy(dataset, 300) > 0.9


def test_images_are_bytes_and_other_shapes_are_floats():
    assert load_dataset("synthetic", num_samples=50).inputs.dtype == np.uint8
    assert load_dataset("synthetic", num_samples=50, shape=[7]).inputs.dtype == np.float32


def test_the_seed_decides_every_value():
    options = {"num_samples": 100, "shape": (1, 6, 6)}
    prints = [load_dataset("synthetic", seed=seed, **options).fingerprint() for seed in (0, 0, 1)]
    assert prints[0] == prints[1] != prints[2]


def test_classes_are_balanced():
    counts = np.bincount(load_dataset("synthetic", num_samples=103, num_classes=10).labels)
    assert counts.max() - counts.min() <= 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_samples": 5}, "num_samples must be a whole number >= 10, got 5"),
        ({"num_samples": 1.5}, "num_samples must be a whole number >= 10, got 1.5"),
        ({"num_classes": 0}, "num_classes must be a whole number >= 1, got 0"),
        ({"num_classes": True}, "num_classes must be a whole number >= 1, got True"),
        ({"shape": ()}, "shape must have at least one number, got ()"),
        ({"shape": (1, 0, 3)}, "shape must be a whole number >= 1, got 0"),
    ],
)
def test_bad_options_are_refused(options, message):
    with pytest.raises(ConfigError, match=re.escape(message)):
        load_dataset("synthetic", **options)
