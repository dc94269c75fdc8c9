"""CIFAR-10 and CIFAR-100: colour images, 32 x 32, in the publisher's "python version" files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fedwave.data.dataset import Dataset
from fedwave.data.formats import damaged
from fedwave.data.formats.safe_pickle import read_byte_pickle
from fedwave.data.sources.load_request import LoadRequest
from fedwave.data.sources.locate import find_folder, not_found
from fedwave.errors import DataError

IMAGE_SHAPE = (3, 32, 32)
BYTES_PER_IMAGE = 3 * 32 * 32


@dataclass(frozen=True, kw_only=True)
class CifarFiles:
    """The file names and pickle keys of one of the two datasets."""

    name: str
    folder: str
    train_files: tuple[str, ...]
    test_file: str
    meta_file: str
    labels_key: str
    names_key: str
    num_classes: int

    def find(self, data_dir: Path | None) -> Path | None:
        """Return the folder that holds the class names and at least one batch, or None."""
        return find_folder(data_dir, (self.folder, self.name), self._holds_batches)

    def load(self, request: LoadRequest) -> Dataset:
        """Return the images as uint8 (3, 32, 32); ``all`` is every batch that is present."""
        folder = self.find(request.data_dir)
        if folder is None:
            raise not_found(
                self.name,
                files=f"{self.folder}/{self.meta_file} and the batches beside it",
                data_dir=request.data_dir,
            )
        wanted = list(self.train_files) * request.wants_train + [self.test_file] * request.wants_test
        present = [name for name in wanted if (folder / name).is_file()]
        missing = [name for name in wanted if name not in present]
        if missing and request.split != "all":
            raise DataError(
                f'{self.name}: {folder} lacks {", ".join(missing)} for split="{request.split}". '
                f'Use split="all" to read what is there, or run: fedwave datasets download {self.name}'
            )
        batches = [self._read_batch(folder / name) for name in present]
        num_images = sum(len(labels) for _, labels in batches)
        absent = f"; not present: {', '.join(missing)}" if missing else ""
        return Dataset(
            name=self.name,
            inputs=np.concatenate([images for images, _ in batches]),
            labels=np.concatenate([labels for _, labels in batches]),
            num_classes=self.num_classes,
            class_names=self._read_names(folder / self.meta_file),
            source=f"{' + '.join(present)} ({num_images:,} images{absent})",
        )

    def _holds_batches(self, folder: Path) -> bool:
        batches = (*self.train_files, self.test_file)
        return (folder / self.meta_file).is_file() and any((folder / name).is_file() for name in batches)

    def _read_batch(self, path: Path) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        content = read_byte_pickle(path, dataset=self.name)
        images, labels = content.get("data"), content.get(self.labels_key)
        if not isinstance(images, np.ndarray) or images.ndim != 2 or images.shape[1] != BYTES_PER_IMAGE:
            got = f"shape {images.shape}" if isinstance(images, np.ndarray) else type(images).__name__
            raise damaged(
                path, f'"data" must have {BYTES_PER_IMAGE} bytes a row, got {got}', dataset=self.name
            )
        if not isinstance(labels, list) or not all(isinstance(label, int) for label in labels):
            raise damaged(path, f'"{self.labels_key}" must be a list of whole numbers', dataset=self.name)
        if len(labels) != len(images) or not all(0 <= label < self.num_classes for label in labels):
            raise damaged(
                path,
                f"{len(images)} images need as many labels in 0..{self.num_classes - 1}, got {len(labels)} "
                f"in {min(labels, default=None)}..{max(labels, default=None)}",
                dataset=self.name,
            )
        return images.reshape(-1, *IMAGE_SHAPE), np.array(labels, dtype=np.int64)

    def _read_names(self, path: Path) -> tuple[str, ...]:
        names = read_byte_pickle(path, dataset=self.name).get(self.names_key)
        if not isinstance(names, list) or len(names) != self.num_classes:
            raise damaged(path, f'"{self.names_key}" must list {self.num_classes} names', dataset=self.name)
        return tuple(name.decode("latin1") if isinstance(name, bytes) else str(name) for name in names)


CIFAR_10 = CifarFiles(
    name="cifar-10",
    folder="cifar-10-batches-py",
    train_files=tuple(f"data_batch_{index}" for index in range(1, 6)),
    test_file="test_batch",
    meta_file="batches.meta",
    labels_key="labels",
    names_key="label_names",
    num_classes=10,
)
CIFAR_100 = CifarFiles(
    name="cifar-100",
    folder="cifar-100-python",
    train_files=("train",),
    test_file="test",
    meta_file="meta",
    labels_key="fine_labels",
    names_key="fine_label_names",
    num_classes=100,
)
