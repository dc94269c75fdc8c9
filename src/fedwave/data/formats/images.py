"""Decodes picture files to byte arrays; the one place that imports Pillow."""

from __future__ import annotations

import io
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedwave.errors import DataError, import_extra
from fedwave.files import read_bytes

GREY_MODES = ("1", "L")
# Pillow's modes with more than 8 bits a value; turning them to bytes would clip silently.
DEEP_MODES = ("I", "F", "I;16", "I;16B", "I;16L")


def open_image(content: bytes | Path, *, name: str) -> Any:
    """Return the opened Pillow image (header read, pixels not yet), or raise an error that names the file."""
    pillow = _pillow()
    try:
        image = pillow.open(io.BytesIO(content if isinstance(content, bytes) else read_bytes(content)))
    except (OSError, SyntaxError, ValueError, pillow.DecompressionBombError) as error:
        raise _not_a_picture(name, error) from error
    if image.mode in DEEP_MODES:
        image.close()
        raise DataError(
            f"{name} has more than 8 bits a pixel (mode {image.mode}). Convert it to 8 bits first."
        )
    return image


def pixels_of(
    image: Any, *, grey: bool, name: str, height: int | None = None, width: int | None = None
) -> NDArray[np.uint8]:
    """Return the pixels as uint8 (channels, height, width), resized if a size is given; close the image."""
    try:
        with image:
            converted = image.convert("L" if grey else "RGB")
    except (OSError, SyntaxError, ValueError) as error:
        raise _not_a_picture(name, error) from error
    if height is not None and width is not None and converted.size != (width, height):
        converted = converted.resize((width, height), _pillow().Resampling.BILINEAR)
    pixels: NDArray[np.uint8] = np.asarray(converted, dtype=np.uint8)
    return pixels[None] if grey else pixels.transpose(2, 0, 1)


def _not_a_picture(name: str, error: Exception) -> DataError:
    return DataError(
        f"{name} is truncated, corrupt or not a picture ({type(error).__name__}). Replace or remove it."
    )


def _pillow() -> ModuleType:
    return import_extra("PIL.Image", purpose="Reading pictures", extra="learn")
