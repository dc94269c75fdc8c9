from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from fedwave.data import load_dataset
from fedwave.errors import ConfigError, DataError


def save_picture(path: Path, *, size: tuple[int, int] = (6, 4), mode: str = "L", value: int = 7) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new(mode, size, value if mode in ("L", "I;16") else (value, 0, 9)).save(path)


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    for name in ("b-cats/1.png", "b-cats/2.png", "a-dogs/deep/1.png", "a-dogs/0.png"):
        save_picture(tmp_path / "pictures" / name)
    (tmp_path / "pictures" / "a-dogs" / "notes.txt").write_text("not a picture")
    (tmp_path / "pictures" / ".hidden").mkdir()
    return tmp_path / "pictures"


def test_sub_folders_are_the_classes_in_alphabetical_order(pictures):
    dataset = load_dataset("image-folder", path=pictures)
    assert dataset.class_names == ("a-dogs", "b-cats")
    assert dataset.labels.tolist() == [0, 0, 1, 1]
    assert dataset.inputs.shape == (4, 1, 4, 6)
    assert np.all(dataset.inputs == 7)
    assert dataset.source == "pictures (4 images in 2 sub-folders)"


def test_one_colour_picture_makes_all_of_them_rgb(pictures):
    save_picture(pictures / "b-cats" / "3.png", mode="RGB")
    inputs = load_dataset("image-folder", path=str(pictures)).inputs
    assert inputs.shape == (5, 3, 4, 6)
    assert inputs[-1, :, 0, 0].tolist() == [7, 0, 9]


@pytest.mark.parametrize(("image_size", "shape"), [(5, (5, 5)), ([3, 8], (3, 8))])
def test_pictures_of_several_sizes_are_brought_to_one(pictures, image_size, shape):
    save_picture(pictures / "b-cats" / "3.png", size=(50, 60))
    assert load_dataset("image-folder", path=pictures, image_size=image_size).input_shape == (1, *shape)


def test_several_sizes_without_image_size_are_refused(pictures):
    save_picture(pictures / "b-cats" / "3.png", size=(50, 60))
    with pytest.raises(DataError, match=r"3\.png is 50x60 but 0\.png is 6x4\. Give the option image_size"):
        load_dataset("image-folder", path=pictures)


@pytest.mark.parametrize("image_size", [0, [1, 2, 3], "ab"])
def test_a_bad_image_size_is_refused(pictures, image_size):
    with pytest.raises(ConfigError, match="image_size must be"):
        load_dataset("image-folder", path=pictures, image_size=image_size)


def test_a_broken_picture_is_named(pictures):
    (pictures / "a-dogs" / "0.png").write_bytes(b"no picture")
    with pytest.raises(
        DataError, match=r"0\.png is truncated, corrupt or not a picture .* Replace or remove it"
    ):
        load_dataset("image-folder", path=pictures)


def test_a_truncated_picture_is_named(pictures):
    picture = pictures / "a-dogs" / "0.png"
    noise = np.random.default_rng(0).integers(0, 256, size=(40, 60), dtype=np.uint8)
    Image.fromarray(noise).save(picture)
    picture.write_bytes(picture.read_bytes()[:600])
    with pytest.raises(DataError, match=r"0\.png is truncated, corrupt or not a picture"):
        load_dataset("image-folder", path=pictures, image_size=4)


def test_sixteen_bit_pictures_are_refused_rather_than_clipped(pictures):
    save_picture(pictures / "a-dogs" / "0.png", mode="I;16", value=5000)
    with pytest.raises(DataError, match="more than 8 bits a pixel"):
        load_dataset("image-folder", path=pictures)


def test_folders_without_pictures_are_refused(pictures, tmp_path):
    with pytest.raises(DataError, match="nowhere is not a folder"):
        load_dataset("image-folder", path=tmp_path / "nowhere")
    with pytest.raises(DataError, match=r"deep has no sub-folders\. Put the pictures of each class"):
        load_dataset("image-folder", path=pictures / "a-dogs" / "deep")
    (pictures / "c-empty").mkdir()
    with pytest.raises(DataError, match="c-empty holds no pictures"):
        load_dataset("image-folder", path=pictures)


def test_saved_arrays_are_read_with_their_class_names(tmp_path):
    file = tmp_path / "mine.npz"
    np.savez(file, inputs=np.ones((3, 2)), labels=[0, 1, 1], class_names=["no", "yes"])
    dataset = load_dataset("arrays", path=file)
    assert dataset.class_names == ("no", "yes")
    assert dataset.inputs.dtype == np.float32
    assert dataset.source == "mine.npz (3 samples)"


def test_more_classes_than_labels_can_be_declared(tmp_path):
    np.savez(tmp_path / "mine.npz", inputs=np.ones((3, 2)), labels=[0, 1, 1])
    assert load_dataset("arrays", path=tmp_path / "mine.npz", num_classes=5).num_classes == 5
    with pytest.raises(ConfigError, match="num_classes must be a whole number >= 1, got 0"):
        load_dataset("arrays", path=tmp_path / "mine.npz", num_classes=0)


def test_saved_targets_and_devices_are_read(tmp_path):
    file = tmp_path / "mine.npz"
    np.savez(file, inputs=np.ones((3, 2)), targets=[0.5, 1.5, -1.0], devices=["zoe", "ann", "zoe"])
    dataset = load_dataset("arrays", path=file)
    assert dataset.is_regression
    assert dataset.targets.tolist() == [[0.5], [1.5], [-1.0]]
    assert dataset.labels.tolist() == [0, 0, 0]
    assert dataset.device_names == ("ann", "zoe")
    assert dataset.device_of_sample.tolist() == [1, 0, 1]
    np.savez(file, inputs=np.ones((3, 2)), labels=[1, 0, 1], targets=np.ones((3, 2)), other=[None])
    both = load_dataset("arrays", path=file)
    assert both.num_classes == both.num_outputs == 2
    assert both.labels.tolist() == [1, 0, 1]
    assert both.device_of_sample is None


def write_npz_with_objects(file: Path) -> None:
    np.savez(file, inputs=np.array([{"a": 1}, None], dtype=object), labels=[0, 1])


def write_npy(file: Path) -> None:
    with file.open("wb") as stream:
        np.save(stream, np.ones(3))


def write_truncated(file: Path) -> None:
    np.savez(file, inputs=np.ones((300, 2)), labels=np.zeros(300, int))
    file.write_bytes(file.read_bytes()[:-50])


def write_bad_compression(file: Path) -> None:
    np.savez_compressed(file, inputs=np.arange(3000.0).reshape(300, 10), labels=np.zeros(300, int))
    damaged = bytearray(file.read_bytes())
    damaged[60:400] = bytes(340)
    file.write_bytes(damaged)


def write_devices_as_objects(file: Path) -> None:
    np.savez(file, inputs=np.ones((2, 1)), labels=[0, 1], devices=np.array(["a", None], dtype=object))


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (lambda file: None, "does not exist. Correct the option path."),
        (write_npz_with_objects, "Object arrays cannot be loaded when allow_pickle=False"),
        (write_npy, "holds a single array. Save plain arrays with: np.savez(file, inputs=x, labels=y)"),
        (write_truncated, "cannot be read as .npz"),
        (lambda file: file.write_bytes(b"garbage"), "cannot be read as .npz"),
        (lambda file: file.write_bytes(b""), "cannot be read as .npz"),
        (lambda file: np.savez(file, x=[1]), "lacks inputs, got: x. Save plain arrays with: np.savez"),
        (lambda file: np.savez(file, inputs=np.ones((2, 1))), "expected labels or targets, got neither"),
        (lambda file: np.savez(file, inputs=1.0, labels=0), "inputs must be numbers of shape (samples, ...)"),
        (write_bad_compression, "cannot be read as .npz"),
        (write_devices_as_objects, "Object arrays cannot be loaded when allow_pickle=False"),
    ],
)
def test_a_file_that_is_not_what_it_should_be_is_refused(tmp_path, write, message):
    file = tmp_path / "mine.npz"
    write(file)
    with pytest.raises(DataError) as caught:
        load_dataset("arrays", path=file)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
