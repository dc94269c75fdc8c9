"""Fashion-MNIST: 70,000 grey images of clothes, 28 x 28, ten classes, in four IDX files."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from fedwave.data.dataset import Dataset
from fedwave.data.formats import damaged
from fedwave.data.formats.idx import read_idx
from fedwave.data.sources.load_request import LoadRequest
from fedwave.data.sources.locate import find_folder, not_found
from fedwave.errors import DataError

NAME = "fashion-mnist"
CLASS_NAMES = (
    "T-shirt/top",
    "Trouser",
    "Pullover",
    "Dress",
    "Coat",
    "Sandal",
    "Shirt",
    "Sneaker",
    "Bag",
    "Ankle boot",
)
# Our own layout and Debian's, then torchvision's.
SUBFOLDERS = ("fashion-mnist", "FashionMNIST/raw")
TRAIN, TEST = "train", "t10k"
IMAGES, LABELS = "images-idx3-ubyte", "labels-idx1-ubyte"


def find_fashion_mnist(data_dir: Path | None) -> Path | None:
    """Return the folder that holds at least one of the two image files, or None."""
    return find_folder(data_dir, SUBFOLDERS, _holds_images)


def load_fashion_mnist(request: LoadRequest) -> Dataset:
    """Return Fashion-MNIST as uint8 images of shape (1, 28, 28); ``all`` is the 70,000 of both splits."""
    folder = find_fashion_mnist(request.data_dir)
    if folder is None:
        raise not_found(
            NAME,
            files="fashion-mnist/train-images-idx3-ubyte.gz and its three companions",
            data_dir=request.data_dir,
            debian_package="dataset-fashion-mnist",
        )
    wanted = [TRAIN] * request.wants_train + [TEST] * request.wants_test
    prefixes = [prefix for prefix in wanted if request.split != "all" or _file(folder, prefix, IMAGES)]
    missing = [f"{prefix}-{IMAGES}" for prefix in wanted if prefix not in prefixes]
    images, labels, names = [], [], []
    for prefix in prefixes:
        image_path, label_path = (_require_file(folder, prefix, kind) for kind in (IMAGES, LABELS))
        images.append(read_idx(image_path, num_dimensions=3, dataset=NAME))
        labels.append(read_idx(label_path, num_dimensions=1, dataset=NAME))
        if len(images[-1]) != len(labels[-1]):
            mismatch = f"{len(images[-1])} images but {len(labels[-1])} labels in {label_path.name}"
            raise damaged(image_path, mismatch, dataset=NAME)
        names.append(image_path.name)
    num_images = sum(map(len, images))
    absent = f"; not present: {', '.join(missing)}" if missing else ""
    return Dataset(
        name=NAME,
        inputs=np.concatenate(images)[:, None, :, :],
        labels=np.concatenate(labels).astype(np.int64),
        num_classes=len(CLASS_NAMES),
        class_names=CLASS_NAMES,
        source=f"{' + '.join(names)} ({num_images:,} images{absent})",
    )


def _file(folder: Path, prefix: str, kind: str) -> Path | None:
    for ending in (".gz", ""):
        path = folder / f"{prefix}-{kind}{ending}"
        if path.is_file():
            return path
    return None


def _require_file(folder: Path, prefix: str, kind: str) -> Path:
    path = _file(folder, prefix, kind)
    if path is None:
        raise DataError(
            f"fashion-mnist: {folder} lacks {prefix}-{kind}.gz. Copy it there, or run: "
            "fedwave datasets download fashion-mnist"
        )
    return path


def _holds_images(folder: Path) -> bool:
    return any(_file(folder, prefix, IMAGES) for prefix in (TRAIN, TEST))
