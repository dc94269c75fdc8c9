"""What a broken dataset or partition is told."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fedwave.data import Dataset, dataset_from_arrays, user_split
from fedwave.testing import check_dataset, check_partition
from tests.testing.broken import complaint


def good(seed: int, *, size: int = 20) -> Dataset:
    return dataset_from_arrays(np.random.default_rng(seed).normal(size=(size, 3)), np.arange(size) % 2)


def restless(seed: int) -> Dataset:
    return dataset_from_arrays(np.random.default_rng().normal(size=(20, 3)), np.arange(20) % 2)


def in_double(seed: int) -> Dataset:
    return replace(good(seed), inputs=np.zeros((20, 3)))


def with_gaps(seed: int) -> Dataset:
    return replace(good(seed), inputs=np.full((20, 3), np.nan, dtype=np.float32))


def flat(seed: int) -> Dataset:
    return replace(good(seed), inputs=np.zeros(20, dtype=np.float32))


def short_labels(seed: int) -> Dataset:
    return replace(good(seed), labels=(np.arange(20) % 2).astype(np.int32))


def single(seed: int) -> Dataset:
    return dataset_from_arrays(np.zeros((1, 3)), [0])


def growing(seed: int) -> Dataset:
    return dataset_from_arrays(np.zeros((20, 3 + seed)), np.arange(20) % 2)


@pytest.mark.parametrize(
    ("dataset", "message"),
    [
        (restless, r"restless must load the same inputs again from the same seed"),
        (in_double, r"inputs must be float32, bytes of images, or token ids, got float64\. Make it with"),
        (with_gaps, r"inputs must be finite"),
        (flat, r"inputs must have shape \(samples, \.\.\.\), got \(20,\)"),
        (short_labels, r"labels must be int64, got int32"),
        (single, r"must have a sample to adapt to and one to be judged by, got 1"),
        (growing, r"input_shape must not depend on the seed, got \(3,\) and \(4,\)"),
        (lambda: "samples", r"load must answer .* must return a Dataset, got 'samples'"),
    ],
)
def test_a_broken_dataset_is_named_with_what_it_must_do(dataset: Any, message: str) -> None:
    assert complaint(message, check_dataset, dataset)


def test_a_dataset_without_faults_passes() -> None:
    check_dataset(good, size=12)
    check_dataset("tests.testing.test_data:good")


def four_each(supply: Any, num_devices: int = 20) -> Any:
    counts = np.zeros((num_devices, len(supply)), dtype=np.int64)
    counts[:, :3] = 4
    return counts


def lucky(supply: Any, num_devices: int = 20) -> Any:
    counts = four_each(supply, num_devices)
    return counts * np.random.default_rng().permutation(np.arange(num_devices) % 2 + 1)[:, None]


def greedy(supply: Any, num_devices: int = 20) -> Any:
    return np.tile(supply, (num_devices, 1))


def of_nobodys_class(supply: Any, num_devices: int = 20) -> Any:
    return np.full((num_devices, len(supply)), 4)


def in_shares(supply: Any, num_devices: int = 20) -> Any:
    return np.full((num_devices, len(supply)), 0.5)


def relabels(labels: Any, supply: Any) -> Any:
    labels[:] = 0
    return four_each(supply)


@pytest.mark.parametrize(
    ("partition", "message"),
    [
        (lucky, r"lucky\.divide must answer alike"),
        (in_shares, r"divide must answer .* must return counts of shape"),
        (relabels, r"divide must leave its inputs alone"),
    ],
)
def test_a_broken_partition_is_named_with_what_it_must_do(partition: Any, message: str) -> None:
    assert complaint(message, check_partition, partition)


@pytest.mark.parametrize("partition", [greedy, of_nobodys_class])
def test_a_partition_that_gives_out_what_is_not_there_is_told_what_is_short(partition: Any) -> None:
    with pytest.raises(AssertionError, match=r"must be such that it can be dealt out: Class \d has"):
        check_partition(partition)


def test_a_partition_without_faults_passes() -> None:
    check_partition(four_each, num_devices=5)
    check_partition(lambda labels: user_split(np.arange(len(labels)) // 50))
