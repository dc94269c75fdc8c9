"""The user's own data: a .npz file of arrays, or a folder of pictures with one sub-folder per class."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from fedwave.data.dataset import Dataset, dataset_from_arrays
from fedwave.data.formats.images import GREY_MODES, open_image, pixels_of
from fedwave.data.formats.npz import read_npz
from fedwave.data.sources.load_request import LoadRequest
from fedwave.errors import ConfigError, DataError, require_count
from fedwave.ram import require_memory

PICTURE_ENDINGS = frozenset(
    {".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".pgm", ".ppm"}
)


def load_arrays(request: LoadRequest, *, path: Path | None = None, num_classes: int | None = None) -> Dataset:
    """Return the samples of a .npz file; reads no pickle.

    It holds ``inputs``, and ``labels`` or ``targets`` or both; if you like also ``devices``, the owner of
    each sample, and ``class_names``. All are as in ``dataset_from_arrays``.
    """
    del request
    file = _require_path("arrays", path, example="samples.npz")
    if num_classes is not None:
        require_count("num_classes", num_classes, at_least=1)
    arrays = read_npz(
        file,
        required=("inputs",),
        optional=("labels", "targets", "devices", "class_names"),
        fix="Save plain arrays with: np.savez(file, inputs=x, labels=y)",
    )
    class_names = arrays.get("class_names")
    return dataset_from_arrays(
        arrays["inputs"],
        arrays.get("labels"),
        targets=arrays.get("targets"),
        device_of_sample=arrays.get("devices"),
        num_classes=num_classes,
        class_names=None if class_names is None else class_names.astype(str).tolist(),
        source=f"{file.name} ({len(np.atleast_1d(arrays['inputs'])):,} samples)",
    )


def load_image_folder(
    request: LoadRequest, *, path: Path | None = None, image_size: int | Sequence[int] | None = None
) -> Dataset:
    """Return the pictures of a folder, one class per sub-folder, in alphabetical order.

    Grey pictures give one channel, as long as all are grey; otherwise all become RGB. They must have one
    size, unless ``image_size`` (one number, or height and width) says to which size they are brought.
    """
    del request
    root = _require_path("image-folder", path, example="pictures/")
    if not root.is_dir():
        raise DataError(
            f"{root} is not a folder. The option path must name a folder with a sub-folder per class."
        )
    height, width = _height_and_width(image_size)
    class_folders = sorted(f for f in root.iterdir() if f.is_dir() and not f.name.startswith("."))
    if not class_folders:
        raise DataError(
            f"{root} has no sub-folders. Put the pictures of each class in a folder of their own."
        )
    files: list[tuple[Path, int]] = []
    for label, folder in enumerate(class_folders):
        pictures = sorted(file for file in folder.rglob("*") if file.suffix.lower() in PICTURE_ENDINGS)
        if not pictures:
            raise DataError(
                f"{folder} holds no pictures. Remove the folder or put pictures of that class in it."
            )
        files += [(file, label) for file in pictures]
    grey, (first_width, first_height) = _survey(files, must_agree=height is None)
    height, width = height or first_height, width or first_width
    require_memory(
        len(files) * 3 * height * width,
        what=f"{len(files):,} pictures of {height} x {width}",
        fix="Use a smaller image_size.",
    )
    inputs = np.empty((len(files), 1 if grey else 3, height, width), dtype=np.uint8)
    for index, (file, _) in enumerate(files):
        image = open_image(file, name=str(file))
        inputs[index] = pixels_of(image, grey=grey, name=str(file), height=height, width=width)
    return Dataset(
        name="image-folder",
        inputs=inputs,
        labels=np.array([label for _, label in files], dtype=np.int64),
        num_classes=len(class_folders),
        class_names=tuple(folder.name for folder in class_folders),
        source=f"{root.resolve().name} ({len(files):,} images in {len(class_folders)} sub-folders)",
    )


def _survey(files: Sequence[tuple[Path, int]], *, must_agree: bool) -> tuple[bool, tuple[int, int]]:
    """Return whether all pictures are grey, and the first one's (width, height), from the headers alone."""
    grey = True
    first_size: tuple[int, int] | None = None
    for file, _ in files:
        with open_image(file, name=str(file)) as image:
            grey = grey and image.mode in GREY_MODES
            first_size = first_size or image.size
            if must_agree and image.size != first_size:
                raise DataError(
                    f"{file} is {image.size[0]}x{image.size[1]} but {files[0][0].name} is "
                    f"{first_size[0]}x{first_size[1]}. Give the option image_size to bring all to one size."
                )
    assert first_size is not None  # the caller gives at least one file
    return grey, first_size


def _height_and_width(image_size: int | Sequence[int] | None) -> tuple[int | None, int | None]:
    if image_size is None:
        return None, None
    sides = [image_size, image_size] if isinstance(image_size, int) else list(image_size)
    if len(sides) != 2:
        raise ConfigError(f"image_size must be one number or [height, width], got {image_size!r}. Change it.")
    height, width = (require_count("image_size", side, at_least=1) for side in sides)
    return height, width


def _require_path(name: str, path: Path | None, *, example: str) -> Path:
    if path is None:
        raise ConfigError(f'Dataset {name} needs the option path, got none. Give e.g. path = "{example}".')
    return Path(path).expanduser()
