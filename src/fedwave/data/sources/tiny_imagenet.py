"""Tiny ImageNet: colour photos, 64 x 64, 200 classes, from the unpacked folder or straight from the zip."""

from __future__ import annotations

import re
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

from fedwave.data.dataset import Dataset
from fedwave.data.formats import damaged
from fedwave.data.formats.images import open_image, pixels_of
from fedwave.data.sources.load_request import LoadRequest
from fedwave.data.sources.locate import find_folder, not_found
from fedwave.errors import DataError, require_count
from fedwave.files import open_file, read_bytes

NAME = "tiny-imagenet"
ROOT = "tiny-imagenet-200"
SUBFOLDERS = ("tiny-imagenet", "tiny-imagenet-200", "tiny-imagenet/tiny-imagenet-200")
PIXELS = 64
MAX_MEMBER_BYTES = 100_000_000  # words.txt, the largest, has 2.7 MB
WNIDS = "wnids.txt"
VAL_ANNOTATIONS = "val/val_annotations.txt"
_TRAIN_IMAGE = re.compile(r"train/(?P<wnid>[^/]+)/images/[^/]*?_(?P<number>\d+)\.JPEG")


# What zipfile, and the parsing of the three text files, raise on damaged content.
_UNREADABLE = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    NotImplementedError,
    RuntimeError,
    UnicodeDecodeError,
    KeyError,
    IndexError,
)


class _Files(Protocol):
    """The dataset's files, named relative to its root, wherever they are."""

    def names(self) -> list[str]: ...
    def read(self, name: str) -> bytes: ...


@dataclass(frozen=True)
class _FolderFiles:
    root: Path

    def names(self) -> list[str]:
        return [path.relative_to(self.root).as_posix() for path in self.root.rglob("*") if path.is_file()]

    def read(self, name: str) -> bytes:
        return read_bytes(self.root / name)


@dataclass(frozen=True)
class _ZipFiles:
    archive: zipfile.ZipFile

    def names(self) -> list[str]:
        prefix = f"{ROOT}/"
        return [name.removeprefix(prefix) for name in self.archive.namelist() if name.startswith(prefix)]

    def read(self, name: str) -> bytes:
        member = self.archive.getinfo(f"{ROOT}/{name}")
        if member.file_size > MAX_MEMBER_BYTES:
            raise zipfile.BadZipFile(f"{name} would unpack to {member.file_size:,} bytes")
        return self.archive.read(member)


def find_tiny_imagenet(data_dir: Path | None) -> Path | None:
    """Return the unpacked folder or the zip file that would be read, or None."""
    folder = find_folder(data_dir, SUBFOLDERS, lambda path: _data_in(path) is not None)
    return None if folder is None else _data_in(folder)


def load_tiny_imagenet(request: LoadRequest, *, images_per_class: int | None = None) -> Dataset:
    """Return the labelled photos as uint8 (3, 64, 64); grey ones become RGB.

    ``train`` are the training photos, ``test`` the validation photos (the test photos have no labels) and
    ``all`` both, where present. ``images_per_class`` decodes only the first so many of each class.
    """
    if images_per_class is not None:
        require_count("images_per_class", images_per_class, at_least=1)
    location = find_tiny_imagenet(request.data_dir)
    if location is None:
        raise not_found(
            NAME,
            files="tiny-imagenet/tiny-imagenet-200.zip or the unpacked folder",
            data_dir=request.data_dir,
        )
    try:
        with _open(location) as files:
            return _load(files, location, request, images_per_class)
    except _UNREADABLE as error:
        raise damaged(location, f"{type(error).__name__}: {error}", dataset=NAME) from error
    except OSError as error:
        raise DataError(f"{location} cannot be read ({error.strerror}). Check its permissions.") from error


def _load(files: _Files, location: Path, request: LoadRequest, images_per_class: int | None) -> Dataset:
    names = files.names()
    wnids = files.read(WNIDS).decode().split()
    label_of_wnid = {wnid: label for label, wnid in enumerate(wnids)}
    labelled: list[tuple[int, int, str]] = []  # (label, number, file), training photos before validation ones
    if request.wants_train:
        labelled += _training_photos(names, label_of_wnid)
    if request.wants_test and VAL_ANNOTATIONS in names:
        labelled += _validation_photos(files.read(VAL_ANNOTATIONS).decode(), label_of_wnid)
    if not labelled:
        raise DataError(
            f'{NAME}: {location} holds no photos for split="{request.split}". Use split="all" to read what '
            f"is there, or run: fedwave datasets download {NAME}"
        )
    if images_per_class is not None:
        labelled = _first_of_each_class(labelled, images_per_class)
    inputs = np.empty((len(labelled), 3, PIXELS, PIXELS), dtype=np.uint8)
    for index, (_, _, name) in enumerate(labelled):
        pixels = pixels_of(open_image(files.read(name), name=f"{location}: {name}"), grey=False, name=name)
        if pixels.shape != inputs.shape[1:]:
            raise damaged(location, f"{name} is {pixels.shape[2]}x{pixels.shape[1]}, not 64x64", dataset=NAME)
        inputs[index] = pixels
    return Dataset(
        name=NAME,
        inputs=inputs,
        labels=np.array([label for label, _, _ in labelled], dtype=np.int64),
        num_classes=len(wnids),
        class_names=_class_names(files, names, wnids),
        source=f"{location.name} ({len(labelled):,} images)",
    )


def _training_photos(names: list[str], label_of_wnid: dict[str, int]) -> list[tuple[int, int, str]]:
    matches = (_TRAIN_IMAGE.fullmatch(name) for name in names)
    return sorted(
        (label_of_wnid[match["wnid"]], int(match["number"]), match.string)
        for match in matches
        if match is not None and match["wnid"] in label_of_wnid
    )


def _validation_photos(annotations: str, label_of_wnid: dict[str, int]) -> list[tuple[int, int, str]]:
    rows = (line.split("\t") for line in annotations.splitlines() if line.strip())
    return sorted((label_of_wnid[row[1]], number, f"val/images/{row[0]}") for number, row in enumerate(rows))


def _first_of_each_class(labelled: list[tuple[int, int, str]], limit: int) -> list[tuple[int, int, str]]:
    kept: list[tuple[int, int, str]] = []
    num_kept: dict[int, int] = {}
    for photo in labelled:
        num_kept[photo[0]] = num_kept.get(photo[0], 0) + 1
        if num_kept[photo[0]] <= limit:
            kept.append(photo)
    return kept


def _class_names(files: _Files, names: list[str], wnids: list[str]) -> tuple[str, ...]:
    """Return the words of each class id, or the id itself where words.txt has none."""
    if "words.txt" not in names:
        return tuple(wnids)
    rows = (line.partition("\t") for line in files.read("words.txt").decode().splitlines())
    words = {wnid: text.strip() for wnid, _, text in rows}
    return tuple(words.get(wnid, wnid) for wnid in wnids)


def _data_in(folder: Path) -> Path | None:
    """Return ``folder`` itself when it is the unpacked dataset, else a zip of it in there, else None."""
    if (folder / WNIDS).is_file() and ((folder / "train").is_dir() or (folder / "val").is_dir()):
        return folder
    return min(folder.glob(f"{ROOT}*.zip"), default=None)


@contextmanager
def _open(location: Path) -> Iterator[_Files]:
    if location.is_dir():
        yield _FolderFiles(location)
        return
    with open_file(location) as file, zipfile.ZipFile(file) as archive:
        yield _ZipFiles(archive)
