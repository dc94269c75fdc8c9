"""Devices at fault: who they are, and what becomes of their samples and of nobody else's."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fedwave.data import DeviceData, dataset_from_arrays
from fedwave.data.faults import faulty_positions, with_faults
from fedwave.errors import ConfigError

IMAGES = np.arange(40 * 4, dtype=np.uint8).reshape(40, 1, 2, 2)
DATA = dataset_from_arrays(IMAGES, np.arange(40) % 4)
DEVICES = [DeviceData(np.array([3, 9]), np.arange(20, 38), (0, 1))]
OWN = np.array([3, 9, *range(20, 38)])
OTHERS = np.setdiff1d(np.arange(40), OWN)


def rng() -> np.random.Generator:
    return np.random.default_rng(1)


def test_more_devices_at_fault_are_the_same_and_others() -> None:
    few, many = (faulty_positions(20, count, rng=rng()) for count in (4, 9))
    assert len(few) == 4
    assert set(few) < set(many)
    assert many.tolist() == sorted(set(many.tolist()))
    assert faulty_positions(20, 0, rng=rng()).tolist() == []
    with pytest.raises(ConfigError, match="must be at most the 20 training devices, got 21"):
        faulty_positions(20, 21, rng=rng())


def test_random_labels_come_from_all_classes_and_leave_other_samples() -> None:
    spoilt = with_faults(DATA, DEVICES, "random-labels", rng=rng())
    assert spoilt.labels[OTHERS].tolist() == DATA.labels[OTHERS].tolist()
    assert set(spoilt.labels[OWN].tolist()) == {0, 1, 2, 3}
    assert 0 < np.mean(spoilt.labels[OWN] == DATA.labels[OWN]) < 0.6  # a quarter by chance
    assert spoilt.inputs is DATA.inputs


def test_images_are_turned_over_and_others_are_not() -> None:
    spoilt = with_faults(DATA, DEVICES, "upside-down", rng=rng())
    assert spoilt.inputs[OWN].tolist() == IMAGES[OWN][:, :, ::-1].tolist()
    assert spoilt.inputs[OTHERS].tolist() == IMAGES[OTHERS].tolist()
    assert spoilt.labels is DATA.labels
    assert DATA.inputs.tolist() == IMAGES.tolist()


def test_liars_and_nobody_have_good_samples() -> None:
    assert with_faults(DATA, DEVICES, "liars", rng=rng()) is DATA
    assert with_faults(DATA, [], "random-labels", rng=rng()) is DATA


def test_what_a_dataset_cannot_have_is_refused() -> None:
    rows = dataset_from_arrays(np.zeros((40, 3), dtype=np.float32), np.arange(40) % 4)
    with pytest.raises(ConfigError, match="needs images, got inputs of shape"):
        with_faults(rows, DEVICES, "upside-down", rng=rng())
    aimed = replace(rows, targets=np.zeros((40, 1), dtype=np.float32))
    with pytest.raises(ConfigError, match="needs a dataset with classes"):
        with_faults(aimed, DEVICES, "random-labels", rng=rng())
