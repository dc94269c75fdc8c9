from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import pytest

from fedwave.data import load_dataset
from fedwave.errors import ConfigError, DataError
from tests.data.dataset_files import picture_bytes, write_tiny_imagenet


@pytest.fixture
def root(empty_machine: Path, tmp_path: Path) -> Path:
    folder = tmp_path / "own" / "tiny-imagenet-200"
    write_tiny_imagenet(folder)
    return folder


def zip_of(root: Path, path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        for file in sorted(root.rglob("*"), reverse=True):
            archive.write(file, file.relative_to(root.parent).as_posix())
    return path


def test_labels_follow_the_order_of_wnids_and_names_come_from_words(root):
    dataset = load_dataset("tiny-imagenet", data_dir=root.parent)
    assert dataset.class_names == ("dog", "cat, kitty")
    assert dataset.inputs.shape == (6, 3, 64, 64)
    assert dataset.labels.tolist() == [0, 0, 1, 1, 0, 1]


def test_grey_photos_become_rgb(root):
    first = load_dataset("tiny-imagenet", data_dir=root.parent).inputs[0]
    assert np.array_equal(first[0], first[1])
    assert np.all(np.abs(first.astype(int) - 100) <= 2)


def test_the_zip_holds_the_same_dataset_as_the_folder(root, tmp_path):
    packed = zip_of(root, tmp_path / "packed" / "tiny-imagenet" / "tiny-imagenet-200-part.zip")
    from_folder = load_dataset("tiny-imagenet", data_dir=root)
    from_zip = load_dataset("tiny-imagenet", data_dir=tmp_path / "packed")
    assert from_zip.fingerprint() == from_folder.fingerprint()
    assert from_zip.class_names == from_folder.class_names
    assert from_zip.source == f"{packed.name} (6 images)"


def test_splits_can_be_had_alone_and_images_per_class_limits_each_class(root):
    sizes = [load_dataset("tiny-imagenet", data_dir=root, split=s).num_samples for s in ("train", "test")]
    assert sizes == [4, 2]
    few = load_dataset("tiny-imagenet", data_dir=root, images_per_class=1)
    assert few.labels.tolist() == [0, 1]


def test_images_per_class_must_be_positive(root):
    with pytest.raises(ConfigError, match="images_per_class must be a whole number >= 1, got 0"):
        load_dataset("tiny-imagenet", data_dir=root, images_per_class=0)


def test_a_split_without_photos_is_refused(root):
    (root / "val" / "val_annotations.txt").unlink()
    with pytest.raises(DataError, match='holds no photos for split="test"'):
        load_dataset("tiny-imagenet", data_dir=root, split="test")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "n02_0.JPEG is truncated, corrupt or not a picture"),
        (picture_bytes()[:300], "n02_0.JPEG is truncated, corrupt or not a picture"),
        (picture_bytes((32, 64)), "n02_0.JPEG is 32x64, not 64x64"),
    ],
)
def test_a_damaged_photo_is_named(root, content, message):
    (root / "train/n02/images/n02_0.JPEG").write_bytes(content)
    with pytest.raises(DataError) as caught:
        load_dataset("tiny-imagenet", data_dir=root)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_truncated_zip_is_named_with_the_command_that_replaces_it(root, tmp_path):
    packed = zip_of(root, tmp_path / "packed" / "tiny-imagenet-200.zip")
    packed.write_bytes(packed.read_bytes()[:-100])
    with pytest.raises(
        DataError, match=r"tiny-imagenet-200\.zip is truncated or corrupt \(BadZipFile.*--force tiny-"
    ):
        load_dataset("tiny-imagenet", data_dir=tmp_path / "packed")


def test_a_zip_with_flipped_bytes_is_refused(root, tmp_path):
    packed = zip_of(root, tmp_path / "packed" / "tiny-imagenet-200.zip")
    content = packed.read_bytes()
    packed.write_bytes(content.replace(b"n02\nn01\n", b"n02\nnXX\n", 1))
    with pytest.raises(DataError, match="Bad CRC-32"):
        load_dataset("tiny-imagenet", data_dir=tmp_path / "packed")


def test_a_validation_class_that_does_not_exist_is_refused(root):
    (root / "val" / "val_annotations.txt").write_text("val_0.JPEG\tn77\n")
    with pytest.raises(DataError, match=r"is truncated or corrupt .*n77"):
        load_dataset("tiny-imagenet", data_dir=root)
