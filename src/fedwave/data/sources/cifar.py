"""CIFAR-10 and CIFAR-100: colour images, 32 x 32, in the publisher's binary or python version.

A batch is read from its binary file where there is one: bytes of labels and pixels, which need no unpickler.
"""

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
from fedwave.files import read_bytes

IMAGE_SHAPE = (3, 32, 32)
BYTES_PER_IMAGE = 3 * 32 * 32


@dataclass(frozen=True, kw_only=True)
class CifarFiles:
    """The file names and pickle keys of one of the two datasets; binary batches are ``name.bin``."""

    name: str
    binary_folder: str
    folder: str  # of the python version
    train_files: tuple[str, ...]
    test_file: str
    binary_names_file: str
    num_label_bytes: int  # before the pixels of a binary image; the last is the class
    meta_file: str
    labels_key: str
    names_key: str
    num_classes: int

    def find(self, data_dir: Path | None) -> Path | None:
        """Return the folder that holds the class names and at least one batch, or None."""
        return find_folder(data_dir, (self.binary_folder, self.folder, self.name), self._holds_batches)

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
        file_of = {name: _batch_file(folder, name) for name in wanted}
        present = [path for path in file_of.values() if path is not None]
        missing = [name for name, path in file_of.items() if path is None]
        if missing and request.split != "all":
            raise DataError(
                f'{self.name}: {folder} lacks {", ".join(missing)} for split="{request.split}". '
                f'Use split="all" to read what is there, or run: fedwave datasets download {self.name}'
            )
        batches = [self._read_batch(path) for path in present]
        num_images = sum(len(labels) for _, labels in batches)
        absent = f"; not present: {', '.join(missing)}" if missing else ""
        return Dataset(
            name=self.name,
            inputs=np.concatenate([images for images, _ in batches]),
            labels=np.concatenate([labels for _, labels in batches]),
            num_classes=self.num_classes,
            class_names=self._read_names(folder),
            source=f"{' + '.join(path.name for path in present)} ({num_images:,} images{absent})",
        )

    def _holds_batches(self, folder: Path) -> bool:
        batches = (*self.train_files, self.test_file)
        has_names = any((folder / name).is_file() for name in (self.binary_names_file, self.meta_file))
        return has_names and any(_batch_file(folder, name) for name in batches)

    def _read_batch(self, path: Path) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        if path.suffix == ".bin":
            return self._read_binary(path)
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

    def _read_binary(self, path: Path) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        content = np.frombuffer(_read_bytes(path), dtype=np.uint8)
        row_bytes = self.num_label_bytes + BYTES_PER_IMAGE
        if content.size == 0 or content.size % row_bytes:
            raise damaged(
                path, f"it must have {row_bytes} bytes an image, got {content.size} in all", dataset=self.name
            )
        rows = content.reshape(-1, row_bytes)
        labels = rows[:, self.num_label_bytes - 1].astype(np.int64)
        if labels.max() >= self.num_classes:
            raise damaged(
                path, f"labels must lie in 0..{self.num_classes - 1}, got {labels.max()}", dataset=self.name
            )
        return rows[:, self.num_label_bytes :].reshape(-1, *IMAGE_SHAPE), labels

    def _read_names(self, folder: Path) -> tuple[str, ...]:
        path = folder / self.binary_names_file
        if path.is_file():
            lines = _read_bytes(path).decode("latin1").splitlines()
            found = tuple(line.strip() for line in lines if line.strip())
            if len(found) != self.num_classes:
                raise damaged(
                    path, f"it must list {self.num_classes} names, got {len(found)}", dataset=self.name
                )
            return found
        path = folder / self.meta_file
        names = read_byte_pickle(path, dataset=self.name).get(self.names_key)
        if not isinstance(names, list) or len(names) != self.num_classes:
            raise damaged(path, f'"{self.names_key}" must list {self.num_classes} names', dataset=self.name)
        return tuple(name.decode("latin1") if isinstance(name, bytes) else str(name) for name in names)


def _batch_file(folder: Path, name: str) -> Path | None:
    """Return the file of a batch, the binary one if it is there; None if there is neither."""
    return next((path for path in (folder / f"{name}.bin", folder / name) if path.is_file()), None)


def _read_bytes(path: Path) -> bytes:
    try:
        return read_bytes(path)
    except OSError as error:
        raise DataError(f"{path} cannot be read ({error.strerror}). Check its permissions.") from error


CIFAR_10 = CifarFiles(
    name="cifar-10",
    binary_folder="cifar-10-batches-bin",
    folder="cifar-10-batches-py",
    train_files=tuple(f"data_batch_{index}" for index in range(1, 6)),
    test_file="test_batch",
    binary_names_file="batches.meta.txt",
    num_label_bytes=1,
    meta_file="batches.meta",
    labels_key="labels",
    names_key="label_names",
    num_classes=10,
)
CIFAR_100 = CifarFiles(
    name="cifar-100",
    binary_folder="cifar-100-binary",
    folder="cifar-100-python",
    train_files=("train",),
    test_file="test",
    binary_names_file="fine_label_names.txt",
    num_label_bytes=2,  # the coarse class, then the fine one
    meta_file="meta",
    labels_key="fine_labels",
    names_key="fine_label_names",
    num_classes=100,
)
