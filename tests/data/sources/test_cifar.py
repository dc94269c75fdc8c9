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


# The binary version


def binary_rows(labels: list[list[int]], images: np.ndarray) -> bytes:
    """Write labels and pixels as the publisher does: labels, then 3,072 pixels, and so on."""
    return b"".join(bytes([*own, *image]) for own, image in zip(labels, images.tolist(), strict=True))


def test_both_versions_of_cifar_10_give_the_same_dataset(tmp_path):
    python, binary = tmp_path / "p" / "cifar-10-batches-py", tmp_path / "b" / "cifar-10-batches-bin"
    images = write_cifar_10(python, "test_batch")
    binary.mkdir(parents=True)
    names = "".join(f"class {index}\n" for index in range(10))
    (binary / "batches.meta.txt").write_text(names + "\n")
    (binary / "test_batch.bin").write_bytes(binary_rows([[i % 10] for i in range(len(images))], images))
    expected, found = (load_dataset("cifar-10", data_dir=folder.parent) for folder in (python, binary))
    assert found.fingerprint() == expected.fingerprint()
    assert found.class_names == expected.class_names
    assert found.source.startswith("test_batch.bin (20 images; not present: data_batch_1, ")


def test_the_binary_file_of_a_batch_is_taken_before_the_pickle(tmp_path):
    folder = tmp_path / "cifar-10"
    images = write_cifar_10(folder, "data_batch_1", "test_batch")
    (folder / "test_batch.bin").write_bytes(binary_rows([[3]], images[:1]))
    dataset = load_dataset("cifar-10", data_dir=tmp_path, split="test")
    assert dataset.labels.tolist() == [3]
    assert load_dataset("cifar-10", data_dir=tmp_path).source.startswith("data_batch_1 + test_batch.bin (21 ")


def test_cifar_100_takes_the_fine_class_of_a_binary_image(tmp_path):
    folder = tmp_path / "cifar-100-binary"
    folder.mkdir()
    (folder / "fine_label_names.txt").write_text("\n".join(f"fine {index}" for index in range(100)))
    images = np.random.default_rng(0).integers(0, 256, size=(2, 3072), dtype=np.uint8)
    (folder / "test.bin").write_bytes(binary_rows([[19, 99], [0, 7]], images))
    dataset = load_dataset("cifar-100", data_dir=tmp_path)
    assert dataset.labels.tolist() == [99, 7]
    assert np.array_equal(dataset.inputs, images.reshape(2, 3, 32, 32))
    assert dataset.class_names[99] == "fine 99"


@pytest.mark.parametrize(
    ("names", "content", "message"),
    [
        ("a\n" * 10, b"", "3073 bytes an image, got 0 in all"),
        ("a\n" * 10, bytes(3074), "3073 bytes an image, got 3074 in all"),
        ("a\n" * 10, bytes([10, *bytes(3072)]), r"labels must lie in 0\.\.9, got 10"),
        ("a\n" * 9, bytes(3073), "must list 10 names, got 9"),
    ],
)
def test_a_damaged_binary_file_is_refused_in_one_line(tmp_path, names, content, message):
    (tmp_path / "batches.meta.txt").write_text(names)
    (tmp_path / "test_batch.bin").write_bytes(content)
    with pytest.raises(DataError, match=f"truncated or corrupt .*{message}") as caught:
        load_dataset("cifar-10", data_dir=tmp_path)
    assert "\n" not in str(caught.value)
