from __future__ import annotations

import re
from dataclasses import FrozenInstanceError

import numpy as np
import pytest

import fedwave.data.dataset as dataset_module
from fedwave.data import Dataset, dataset_from_arrays, load_dataset
from fedwave.errors import DataError


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
        (np.zeros((3, 4), dtype=bool), np.float32, (4,)),
        (np.zeros((3, 1, 4, 4), dtype=np.int32), np.int32, (1, 4, 4)),
        (np.zeros((3, 6), dtype=np.int64), np.int64, (6,)),
    ],
    ids=["images", "grey images", "byte vectors", "vectors", "flags", "whole numbers", "token ids"],
)
def test_own_arrays_become_bytes_token_ids_or_float32(inputs, dtype, shape):
    dataset = dataset_from_arrays(inputs, [0, 2, 1])
    assert dataset.inputs.dtype == dtype
    assert dataset.input_shape == shape
    assert dataset.num_classes == 3
    assert dataset.labels.dtype == np.int64


@pytest.mark.parametrize("shape", [(2, 4, 8, 3), (2, 5, 8, 5), (2, 4, 8, 5), (2, 1, 8, 4)])
def test_images_with_few_channels_or_many_columns_are_not_taken_for_channels_last(shape):
    assert dataset_from_arrays(np.zeros(shape, dtype=np.uint8), [0, 1]).inputs.shape == shape


def test_labels_may_be_whole_numbers_written_as_floats():
    assert dataset_from_arrays(np.zeros((3, 2)), [0.0, 1.0, 3.0]).labels.tolist() == [0, 1, 3]


def test_a_single_label_is_a_single_class():
    assert dataset_from_arrays(np.zeros((2, 2)), [0, 0]).num_classes == 1


@pytest.mark.parametrize(
    ("shape", "chunks"),
    [
        ((5, 2, 2), [(0, 2), (2, 4), (4, 5)]),
        ((4, 4), [(0, 2), (2, 4)]),
        ((10,), [(0, 9), (9, 10)]),
        ((2, 100), [(0, 1), (1, 2)]),
        ((0, 3), []),
        ((2, 0), [(0, 2)]),
    ],
)
def test_chunks_cover_all_rows_with_about_the_values_allowed(shape, chunks, monkeypatch):
    monkeypatch.setattr(dataset_module, "VALUES_PER_CHUNK", 9)
    assert dataset_module.row_chunks(np.zeros(shape)) == chunks


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
        (np.zeros((2, 8, 3, 4), dtype=np.uint8), [0, 1], {}, "looks like channels last"),
        (
            np.zeros((2, 0)),
            [0, 1],
            {},
            "inputs must be numbers of shape (samples, ...), got float64 of shape (2, 0)",
        ),
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


@pytest.mark.parametrize(
    ("dataset", "digits"),
    [
        (load_dataset("digits"), "30bc4931a653b604"),
        (load_dataset("synthetic", num_samples=50, shape=(1, 6, 6)), "37cfa5b409af75ef"),
        (load_dataset("synthetic", num_samples=50, shape=(7,), seed=3), "52e21890776c0a20"),
        (dataset_from_arrays(np.arange(12.0).reshape(4, 3), [0, 1, 1, 2]), "6513ac059c906bfd"),
    ],
    ids=lambda value: value.name if isinstance(value, Dataset) else value,
)
def test_the_fingerprint_of_classes_is_that_of_version_0_1_0(dataset, digits):
    assert dataset.fingerprint() == digits  # written down before targets and owners existed


def test_the_fingerprint_changes_with_a_target_an_owner_or_the_name_of_an_owner():
    inputs, labels = np.zeros((4, 2)), [0, 1, 0, 1]
    datasets = [
        dataset_from_arrays(inputs, labels),
        dataset_from_arrays(inputs, labels, targets=[0.0, 1.0, 2.0, 3.0]),
        dataset_from_arrays(inputs, labels, targets=[0.0, 1.0, 2.0, 3.5]),
        dataset_from_arrays(inputs, labels, targets=np.zeros((4, 2))),
        dataset_from_arrays(inputs, labels, device_of_sample=[0, 1, 0, 1]),
        dataset_from_arrays(inputs, labels, device_of_sample=[0, 1, 1, 1]),
        dataset_from_arrays(inputs, labels, device_of_sample=[0, 1, 0, -1]),
        dataset_from_arrays(inputs, labels, device_of_sample=["a", "b", "a", "b"]),
        dataset_from_arrays(inputs, labels, targets=[0, 1, 2, 3], device_of_sample=["a", "b", "a", "b"]),
    ]
    prints = [dataset.fingerprint() for dataset in datasets]
    assert len(set(prints)) == len(prints)
    again = dataset_from_arrays(inputs, labels, device_of_sample=["0", "1", "0", "1"])
    assert again.fingerprint() == prints[4]


def test_targets_without_labels_make_one_class_called_all():
    dataset = dataset_from_arrays(np.zeros((3, 2)), targets=np.arange(6).reshape(3, 2))
    assert dataset.is_regression
    assert dataset.targets.dtype == np.float32
    assert dataset.targets.tolist() == [[0, 1], [2, 3], [4, 5]]
    assert dataset.num_outputs == 2
    assert dataset.num_classes == 1
    assert dataset.class_names == ("all",)
    assert dataset.labels.tolist() == [0, 0, 0]


def test_classes_have_an_output_each():
    dataset = dataset_from_arrays(np.zeros((3, 2)), [0, 2, 1])
    assert not dataset.is_regression
    assert dataset.num_outputs == 3
    assert dataset.targets is None
    assert dataset.device_of_sample is None
    assert dataset.device_names == ()


def test_labels_may_stand_beside_targets_that_are_one_number_a_sample():
    dataset = dataset_from_arrays(np.zeros((3, 2)), [0, 2, 1], targets=[1.5, 2.5, 3.5])
    assert dataset.targets.shape == (3, 1)
    assert dataset.num_outputs == 1
    assert dataset.num_classes == 3
    assert dataset.labels.tolist() == [0, 2, 1]


def test_owners_are_numbered_in_the_order_of_their_ids_and_keep_their_names():
    dataset = dataset_from_arrays(
        np.zeros((5, 2)), [0] * 5, device_of_sample=["zoe", "ann", "", "zoe", "bob"]
    )
    assert dataset.device_names == ("ann", "bob", "zoe")
    assert dataset.device_of_sample.tolist() == [2, 0, -1, 2, 1]


def made_by_hand(**fields) -> Dataset:
    return Dataset(
        "mine", np.zeros((3, 2), np.float32), np.zeros(3, np.int64), 1, ("all",), "nowhere", **fields
    )


def test_a_dataset_cannot_be_changed_and_is_equal_to_itself_alone():
    dataset = made_by_hand()
    with pytest.raises(FrozenInstanceError):
        dataset.targets = np.zeros((3, 1), np.float32)
    assert dataset == dataset
    assert dataset != made_by_hand()


def test_devices_without_names_are_called_by_their_numbers():
    assert made_by_hand(device_of_sample=np.array([2, 0, -1])).device_names == ("0", "1", "2")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"targets": np.zeros((3, 1))}, "targets must be float32 of shape (samples, outputs), got float64"),
        ({"targets": np.zeros(3, np.float32)}, "got float32 of shape (3,)"),
        ({"targets": np.zeros((3, 0), np.float32)}, "got float32 of shape (3, 0)"),
        ({"targets": np.zeros((2, 1), np.float32)}, "targets for each of the 3 samples, got 2"),
        (
            {"targets": np.array([[0], [np.nan], [np.inf]], np.float32)},
            "targets must be finite in float32, got 2 NaN or infinite values",
        ),
        (
            {"device_of_sample": np.array([0, 1])},
            "expected a device for each of the 3 samples as int64, got int64 of shape (2,)",
        ),
        ({"device_of_sample": np.array([0.0, 1.0, 2.0])}, "got float64 of shape (3,)"),
        (
            {"device_of_sample": np.array([0, 1, -2])},
            "must lie in 0..1, or be -1 for samples of nobody, got -2..1",
        ),
        (
            {"device_of_sample": np.array([0, 1, 2]), "device_names": ("a", "b")},
            "must lie in 0..1, or be -1 for samples of nobody, got -1..2",
        ),
        ({"device_of_sample": np.array([-1, -1, -1])}, "no sample belongs to a device"),
        ({"device_of_sample": np.array([0, 1, 1]), "device_names": ("a", "a")}, "two devices have one name"),
        ({"device_names": ("a", "b")}, "got 2 device names but no device_of_sample"),
    ],
)
def test_targets_and_owners_that_do_not_fit_are_refused(fields, message):
    with pytest.raises(DataError, match=re.escape(message)) as caught:
        made_by_hand(**fields)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "expected labels or targets, got neither"),
        ({"targets": ["a", "b"]}, "targets must be numbers of shape (samples, outputs), got <U1"),
        ({"targets": np.zeros((2, 1, 1))}, "got float64 of shape (2, 1, 1)"),
        ({"targets": 1.0}, "got float64 of shape ()"),
        ({"targets": [1.0, np.nan]}, "targets must be finite in float32, got 1 NaN"),
        ({"targets": [1e300, 0.0]}, "targets must be finite in float32, got 1 NaN"),
        ({"targets": [1.0, 2.0], "num_classes": 3}, "describe labels, got targets alone. Remove them."),
        ({"targets": [1.0, 2.0], "class_names": ["a"]}, "describe labels, got targets alone. Remove them."),
        ({"labels": [0, 1], "device_of_sample": [1]}, "a device for each of the 2 samples"),
        (
            {"labels": [0, 1], "device_of_sample": [0.5, 1]},
            "must be whole numbers or a line of text, got 0.5 (float)",
        ),
    ],
)
def test_own_targets_and_owners_that_do_not_fit_are_refused(arguments, message):
    with pytest.raises(DataError, match=re.escape(message)) as caught:
        dataset_from_arrays(np.zeros((2, 2)), **arguments)
    assert "\n" not in str(caught.value)


def test_token_ids_are_whole_numbers_but_for_bytes():
    tokens = np.array([[1, 2], [3, 4]], dtype=np.int16)
    assert dataset_from_arrays(tokens, [0, 1]).has_token_ids
    assert not dataset_from_arrays(tokens.astype(np.uint8), [0, 1]).has_token_ids
    assert not dataset_from_arrays(tokens.astype(np.float64), [0, 1]).has_token_ids
    assert not dataset_from_arrays(np.zeros((2, 4, 4), np.uint8), [0, 1]).has_token_ids


def test_token_ids_beyond_int64_are_refused():
    dataset_from_arrays(np.array([[2**63 - 1]], dtype=np.uint64), [0])
    with pytest.raises(DataError, match=f"token ids must fit int64, got {2**63}"):
        dataset_from_arrays(np.array([[2**63]], dtype=np.uint64), [0])
