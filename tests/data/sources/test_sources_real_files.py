"""The published files themselves, where FEDWAVE_DATA points to a folder that holds them."""

from __future__ import annotations

import os

import numpy as np
import pytest

from fedwave.data import DATASETS, load_dataset, partition
from fedwave.rng import Stream, generator

EXPECTED = {  # shape, number of classes, least samples a class
    "fashion-mnist": ((1, 28, 28), 10, 1000),
    "cifar-10": ((3, 32, 32), 10, 1000),
    "cifar-100": ((3, 32, 32), 100, 100),
    "tiny-imagenet": ((3, 64, 64), 200, 50),
}


@pytest.fixture(scope="module", params=EXPECTED)
def dataset(request):
    name = request.param
    if "FEDWAVE_DATA" not in os.environ:
        pytest.skip("FEDWAVE_DATA is not set: no real datasets to read")
    find = DATASETS[name].find
    assert find is not None
    if find(None) is None:
        pytest.skip(f"FEDWAVE_DATA holds no {name}")
    return load_dataset(name)


def test_the_published_images_have_their_known_shape_and_balance(dataset):
    shape, num_classes, least = EXPECTED[dataset.name]
    counts = np.bincount(dataset.labels, minlength=num_classes)
    assert dataset.input_shape == shape
    assert dataset.inputs.dtype == np.uint8
    assert dataset.num_classes == len(set(dataset.class_names)) == num_classes
    assert counts.min() == counts.max() >= least


def test_pixel_values_agree_with_published_means(dataset):
    # Channel means over 255 as widely published for the full sets; parts of them agree within 0.01.
    means = {
        "fashion-mnist": [0.2860],
        "cifar-10": [0.4914, 0.4822, 0.4465],
        "cifar-100": [0.5071, 0.4865, 0.4409],
        "tiny-imagenet": [0.4802, 0.4481, 0.3975],
    }
    measured = dataset.inputs.mean(axis=(0, 2, 3)) / 255
    np.testing.assert_allclose(measured, means[dataset.name], atol=0.01)


def test_the_papers_hundred_devices_fit(dataset):
    devices = partition(
        dataset.labels,
        kind="paper",
        num_devices=100,
        num_classes=dataset.num_classes,
        rng=generator(0, Stream.PARTITION),
    )
    assert all(len(device.support) == 2 and len(device.query) >= 2 for device in devices)
