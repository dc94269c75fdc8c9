from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest

from fedwave.data import load_dataset
from fedwave.errors import DataError
from tests.data.dataset_files import write_cifar_10


@pytest.fixture
def folder(empty_machine: Path, tmp_path: Path) -> Path:
    return tmp_path / "own" / "cifar-10-batches-py"


def test_rows_become_images_channel_by_channel(folder):
    rows = write_cifar_10(folder, "test_batch")
    dataset = load_dataset("cifar-10", data_dir=folder.parent)
    assert dataset.inputs.shape == (20, 3, 32, 32)
    assert dataset.inputs[4, 1, 2, 3] == rows[4, 1024 + 2 * 32 + 3]
    assert dataset.class_names[3] == "class 3"


def test_one_batch_alone_is_enough_and_the_source_says_so(folder):
    write_cifar_10(folder, "test_batch")
    source = load_dataset("cifar-10", data_dir=folder).source
    assert source.startswith("test_batch (20 images; not present: data_batch_1, ")


def test_all_batches_are_pooled_and_splits_can_be_had_alone(folder):
    write_cifar_10(folder, *(f"data_batch_{index}" for index in range(1, 6)), "test_batch")
    sizes = [
        load_dataset("cifar-10", data_dir=folder, split=split).num_samples
        for split in ("all", "train", "test")
    ]
    assert sizes == [120, 100, 20]


def test_a_split_with_missing_batches_is_refused(folder):
    write_cifar_10(folder, "test_batch", "data_batch_2")
    with pytest.raises(
        DataError, match=r'lacks data_batch_1, data_batch_3, .* for split="train". Use split="all"'
    ):
        load_dataset("cifar-10", data_dir=folder, split="train")


def test_cifar_100_reads_its_fine_labels(empty_machine, tmp_path):
    folder = tmp_path / "own" / "cifar-100-python"
    folder.mkdir(parents=True)
    names = [f"fine {index}" for index in range(100)]
    (folder / "meta").write_bytes(pickle.dumps({"fine_label_names": names}, protocol=2))
    batch = {"data": np.zeros((3, 3072), np.uint8), "fine_labels": [99, 0, 5], "coarse_labels": [1, 2, 3]}
    (folder / "test").write_bytes(pickle.dumps(batch, protocol=2))
    dataset = load_dataset("cifar-100", data_dir=folder.parent)
    assert dataset.labels.tolist() == [99, 0, 5]
    assert dataset.class_names[99] == "fine 99"


@pytest.mark.parametrize(
    ("batch", "message"),
    [
        ([1, 2], "expected a dictionary, got list"),
        ({"labels": [0]}, '"data" must have 3072 bytes a row, got NoneType'),
        ({"data": np.zeros((2, 9), np.uint8), "labels": [0, 1]}, "got shape (2, 9)"),
        ({"data": np.zeros((2, 3072), np.uint8)}, '"labels" must be a list of whole numbers'),
        (
            {"data": np.zeros((2, 3072), np.uint8), "labels": ["a", 1]},
            '"labels" must be a list of whole numbers',
        ),
        (
            {"data": np.zeros((2, 3072), np.uint8), "labels": [0]},
            "2 images need as many labels in 0..9, got 1",
        ),
        ({"data": np.zeros((2, 3072), np.uint8), "labels": [0, 10]}, "in 0..9, got 2 in 0..10"),
        ({"data": np.zeros((2, 3072), np.float32), "labels": [0, 1]}, "expected unsigned bytes"),
    ],
)
def test_a_batch_with_the_wrong_content_is_refused(folder, batch, message):
    write_cifar_10(folder)
    (folder / "test_batch").write_bytes(pickle.dumps(batch, protocol=2))
    with pytest.raises(DataError) as caught:
        load_dataset("cifar-10", data_dir=folder)
    assert message in str(caught.value)
    assert str(caught.value).endswith("fedwave datasets download --force cifar-10")


def test_class_names_of_the_wrong_number_are_refused(folder):
    write_cifar_10(folder, "test_batch")
    (folder / "batches.meta").write_bytes(pickle.dumps({"label_names": ["a"]}, protocol=2))
    with pytest.raises(DataError, match='"label_names" must list 10 names'):
        load_dataset("cifar-10", data_dir=folder)
