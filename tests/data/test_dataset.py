from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.testing import assert_allclose

import fedwave.data.dataset as dataset_module
from fedwave.data import Dataset, dataset_from_arrays, pixel_statistics, standardise
from fedwave.errors import DataError


def bytes_dataset(inputs: np.ndarray) -> Dataset:
    return dataset_from_arrays(inputs, np.zeros(len(inputs), dtype=int))


@given(hnp.arrays(np.uint8, st.tuples(st.integers(1, 40), st.just(1), st.just(3), st.just(2))))
def test_pixel_statistics_agree_with_numpy(inputs):
    mean, std = pixel_statistics(bytes_dataset(inputs))
    assert mean.dtype == std.dtype == np.float32
    assert mean.shape == std.shape == (1, 3, 2)
    assert_allclose(mean, inputs.astype(np.float64).mean(axis=0), rtol=1e-6)
    assert_allclose(std, inputs.astype(np.float64).std(axis=0), rtol=1e-6, atol=1e-6)


def test_pixel_statistics_do_not_depend_on_the_chunk_size(monkeypatch):
    inputs = np.random.default_rng(0).integers(0, 256, size=(101, 1, 4, 4), dtype=np.uint8)
    whole = pixel_statistics(bytes_dataset(inputs))
    monkeypatch.setattr(dataset_module, "VALUES_PER_CHUNK", 48)
    for one, other in zip(whole, pixel_statistics(bytes_dataset(inputs)), strict=True):
        assert_allclose(one, other, rtol=1e-7)


def test_standardised_pixels_have_mean_zero_and_nearly_unit_spread():
    inputs = np.random.default_rng(0).integers(0, 256, size=(500, 1, 4, 4), dtype=np.uint8)
    scaled = standardise(inputs, *pixel_statistics(bytes_dataset(inputs)))
    assert scaled.dtype == np.float32
    assert_allclose(scaled.mean(axis=0), 0, atol=1e-5)
    std = inputs.std(axis=0)
    assert_allclose(scaled.std(axis=0), std / (std + 0.001), rtol=1e-5)


def test_a_pixel_that_never_changes_becomes_zero():
    inputs = np.full((7, 1, 2, 2), 255, dtype=np.uint8)
    assert not standardise(inputs, *pixel_statistics(bytes_dataset(inputs))).any()


def test_the_fingerprint_changes_with_one_pixel_one_label_or_the_shape():
    inputs = np.zeros((4, 1, 2, 2), dtype=np.uint8)
    labels = np.array([0, 1, 0, 1])
    other_inputs, other_labels = inputs.copy(), labels.copy()
    other_inputs[3, 0, 1, 1] = 1
    other_labels[3] = 0
    prints = {
        dataset_from_arrays(x, y, num_classes=2).fingerprint()
        for x, y in [
            (inputs, labels),
            (other_inputs, labels),
            (inputs, other_labels),
            (inputs.reshape(4, 1, 4, 1), labels),
        ]
    }
    assert len(prints) == 4
    assert dataset_from_arrays(inputs, labels).fingerprint() in prints


def test_the_fingerprint_does_not_depend_on_memory_layout():
    inputs = np.arange(24, dtype=np.uint8).reshape(2, 3, 2, 2)
    twisted = np.asfortranarray(inputs)
    labels = np.array([0, 1])
    assert (
        dataset_from_arrays(inputs, labels).fingerprint()
        == dataset_from_arrays(twisted, labels).fingerprint()
    )


@pytest.mark.parametrize(
    ("inputs", "dtype", "shape"),
    [
        (np.zeros((3, 2, 4, 4), dtype=np.uint8), np.uint8, (2, 4, 4)),
        (np.zeros((3, 4, 4), dtype=np.uint8), np.uint8, (1, 4, 4)),
        (np.zeros((3, 5), dtype=np.uint8), np.float32, (5,)),
        (np.zeros((3, 5)), np.float32, (5,)),
        (np.zeros((3, 1, 4, 4), dtype=np.int32), np.float32, (1, 4, 4)),
    ],
    ids=["images", "grey images", "byte vectors", "vectors", "whole numbers"],
)
def test_own_arrays_become_bytes_or_float32(inputs, dtype, shape):
    dataset = dataset_from_arrays(inputs, [0, 2, 1])
    assert dataset.inputs.dtype == dtype
    assert dataset.input_shape == shape
    assert dataset.num_classes == 3
    assert dataset.labels.dtype == np.int64


@pytest.mark.parametrize(
    ("inputs", "labels", "options", "message"),
    [
        (
            np.zeros(3),
            [0, 1, 2],
            {},
            "inputs must be numbers of shape (samples, ...), got float64 of shape (3,)",
        ),
        (np.array([["a"], ["b"]]), [0, 1], {}, "inputs must be numbers"),
        (
            np.zeros((3, 2)),
            [0, 1],
            {},
            "expected one label per sample, got 3 samples and labels of shape (2,)",
        ),
        (np.zeros((2, 2)), [0.5, 1], {}, "labels must be whole numbers from 0, got float64"),
        (np.zeros((2, 2)), ["a", "b"], {}, "labels must be whole numbers from 0, got <U1"),
        (np.zeros((2, 2)), [-1, 1], {}, "labels must lie in 0..1, got -1..1"),
        (np.zeros((2, 2)), [0, 7], {"num_classes": 5}, "labels must lie in 0..4, got 0..7"),
        (np.array([[np.nan], [np.inf]]), [0, 1], {}, "got 2 NaN or infinite values"),
        (np.array([[1e300], [0.0]]), [0, 1], {}, "finite in float32, got 1 NaN or infinite"),
        (np.zeros((0, 2)), [], {}, "no samples in arrays in memory"),
        (np.zeros((2, 8, 8, 3), dtype=np.uint8), [0, 1], {}, "looks like channels last"),
        (np.zeros((2, 2)), [0, 1], {"class_names": ["a"]}, "labels must lie in 0..0, got 0..1"),
        (
            np.zeros((2, 2)),
            [0, 1],
            {"class_names": ["a"], "num_classes": 2},
            "got 1 class names for 2 classes",
        ),
    ],
)
def test_bad_arrays_are_refused_with_the_numbers(inputs, labels, options, message):
    with pytest.raises(DataError, match=re.escape(message)) as caught:
        dataset_from_arrays(inputs, labels, **options)
    assert "\n" not in str(caught.value)
