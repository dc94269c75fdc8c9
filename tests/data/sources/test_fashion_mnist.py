from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from fedwave.data import load_dataset
from fedwave.errors import DataError
from tests.data.dataset_files import idx_bytes, write_fashion_mnist

IMAGES = "train-images-idx3-ubyte"
LABELS = "train-labels-idx1-ubyte"


@pytest.fixture
def folder(empty_machine: Path, tmp_path: Path) -> Path:
    own = tmp_path / "own"
    write_fashion_mnist(own, ending="")
    return own


def test_plain_and_compressed_files_hold_the_same_images(folder, tmp_path):
    write_fashion_mnist(tmp_path / "packed", ending=".gz")
    plain, packed = (load_dataset("fashion-mnist", data_dir=f) for f in (folder, tmp_path / "packed"))
    assert plain.fingerprint() == packed.fingerprint()
    assert plain.inputs.shape == (20, 1, 28, 28)


def test_all_pools_both_splits_and_each_split_can_be_had_alone(folder):
    write_fashion_mnist(folder, prefix="t10k", num_images=7)
    sizes = {
        split: load_dataset("fashion-mnist", data_dir=folder, split=split).num_samples
        for split in ("all", "train", "test")
    }
    assert sizes == {"all": 27, "train": 20, "test": 7}


def test_the_source_says_what_was_read_and_what_was_not_there(folder):
    source = load_dataset("fashion-mnist", data_dir=folder).source
    assert source == f"{IMAGES} (20 images; not present: t10k-images-idx3-ubyte)"


def damage(folder: Path, name: str, content: bytes) -> None:
    (folder / name).write_bytes(content)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (IMAGES, b"", "an IDX header has 16 bytes, got 0"),
        (IMAGES, idx_bytes(np.zeros((20, 28, 28), np.uint8))[:-5], "promises 15680 bytes of data, got 15675"),
        (
            IMAGES,
            idx_bytes(np.zeros((20, 28, 28), np.uint8)) + b"x",
            "promises 15680 bytes of data, got more",
        ),
        (IMAGES, b"\xff" * 100, "its magic number must be 2051, got 4294967295"),
        (IMAGES, b"\x00\x00\x08\x03" + b"\xff" * 12, "bytes of data, more than fits memory"),
        (LABELS, idx_bytes(np.zeros((20, 28, 28), np.uint8)), "its magic number must be 2049, got 2051"),
        (LABELS, idx_bytes(np.zeros(19, np.uint8)), "20 images but 19 labels in train-labels-idx1-ubyte"),
        (
            IMAGES + ".gz",
            gzip.compress(idx_bytes(np.zeros((20, 28, 28), np.uint8)), mtime=0)[:-12],
            "ended before the end-of-stream marker",
        ),
        (IMAGES + ".gz", b"<html>not found</html>", "Not a gzipped file"),
        (IMAGES + ".gz", gzip.compress(bytes(5000), mtime=0)[:10] + b"\xff" * 50, "is truncated or corrupt"),
    ],
)
def test_a_damaged_file_is_named_with_the_command_that_replaces_it(folder, name, content, message):
    damage(folder, name, content)
    with pytest.raises(DataError) as caught:
        load_dataset("fashion-mnist", data_dir=folder)
    text = str(caught.value)
    assert text.startswith(str(folder / "train-"))
    assert message in text
    assert "is truncated or corrupt" in text
    assert text.endswith("Replace it: fedwave datasets download --force fashion-mnist")
    assert "\n" not in text


def test_a_label_beyond_the_ten_classes_is_refused(folder):
    damage(folder, LABELS, idx_bytes(np.full(20, 10, np.uint8)))
    with pytest.raises(DataError, match=r"labels must lie in 0\.\.9, got 10\.\.10"):
        load_dataset("fashion-mnist", data_dir=folder)


def test_images_without_their_labels_are_refused(folder):
    (folder / LABELS).unlink()
    with pytest.raises(DataError, match=r"lacks train-labels-idx1-ubyte.gz. Copy it there, or run: fedwave"):
        load_dataset("fashion-mnist", data_dir=folder)


def test_a_split_that_is_not_there_is_refused(folder):
    with pytest.raises(DataError, match=r"lacks t10k-images-idx3-ubyte\.gz"):
        load_dataset("fashion-mnist", data_dir=folder, split="test")
