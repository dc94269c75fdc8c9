"""From the ids that people give to devices (a writer, a user, a number) to indices 0, 1, 2, ..."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedwave.errors import DataError
from fedwave.units import IntArray

# What stands for a sample that belongs to no device: an empty cell of a table, or -1 in an array of numbers.
NOBODY = ("", "-1")
# Whole numbers as Python prints them, short enough for 64 bits; "007" is text.
WHOLE_NUMBER = re.compile(r"0|-?[1-9][0-9]{0,17}")


def index_devices(ids: Iterable[Any], *, name: str) -> tuple[IntArray, tuple[str, ...]]:
    """Return each sample's device index (-1: nobody's) and the devices' names, in sorted order.

    An id is a whole number or a line of text. Numbers and the text that prints them are one id, so that a
    split means the same from Python, CSV and NPZ: ids that are all whole numbers sort as numbers, others as
    text. -1, the empty text, None and NaN are nobody.
    """
    if isinstance(ids, np.ndarray) and ids.ndim != 1:
        raise DataError(
            f"{name}: device ids must be one per sample, got an array of shape {ids.shape}. Use one column."
        )
    id_of_sample = [device_name(one, name=name) for one in _plain(ids)]
    names = sort_names({one for one in id_of_sample if one not in NOBODY})
    index_of_name = {one: index for index, one in enumerate(names)}
    indices = np.array([index_of_name.get(one, -1) for one in id_of_sample], dtype=np.int64)
    return indices, names


def device_name(device_id: Any, *, name: str) -> str:
    """Return the id as text; the empty text for None and NaN."""
    if device_id is None:
        return ""
    if isinstance(device_id, float | np.floating):  # a table with gaps turns whole numbers to 3.0 and NaN
        if math.isnan(device_id):
            return ""
        if float(device_id).is_integer():
            return str(int(device_id))
    if isinstance(device_id, str) and len(device_id.strip().splitlines()) <= 1:
        return str(device_id).strip()
    if isinstance(device_id, int | np.integer) and not isinstance(device_id, bool):
        return str(int(device_id))
    raise DataError(
        f"{name}: device ids must be whole numbers or a line of text, got {device_id!r} "
        f"({type(device_id).__name__}). Name the device so."
    )


def sort_names(names: Iterable[str]) -> tuple[str, ...]:
    """Return the names in order: as numbers when all are whole numbers, otherwise as text."""
    unsorted = list(names)
    if all(WHOLE_NUMBER.fullmatch(one) for one in unsorted):
        return tuple(sorted(unsorted, key=int))
    return tuple(sorted(unsorted))


def require_devices(
    device_of_sample: NDArray[Any], device_names: tuple[str, ...], *, num_samples: int, name: str
) -> tuple[str, ...]:
    """Return the names of the devices (0, 1, 2, ... when there are none), or refuse what does not fit."""
    if device_of_sample.dtype != np.int64 or device_of_sample.shape != (num_samples,):
        raise DataError(
            f"{name}: expected a device for each of the {num_samples} samples as int64, got "
            f"{device_of_sample.dtype} of shape {device_of_sample.shape}. Use -1 for samples of nobody."
        )
    lowest, highest = int(device_of_sample.min(initial=-1)), int(device_of_sample.max(initial=-1))
    if highest < 0:
        raise DataError(f"{name}: no sample belongs to a device. Give at least one sample a device.")
    names = device_names or tuple(map(str, range(highest + 1)))
    if lowest < -1 or highest >= len(names):
        raise DataError(
            f"{name}: devices must lie in 0..{len(names) - 1}, or be -1 for samples of nobody, got "
            f"{lowest}..{highest}. Give every device a name."
        )
    if len(set(names)) != len(names):
        raise DataError(f"{name}: two devices have one name, got {len(names)} names. Give each its own.")
    return names


def _plain(ids: Iterable[Any]) -> list[Any]:
    """Return the ids as a list of Python's own numbers and texts; bytes are UTF-8."""
    if not isinstance(ids, np.ndarray):
        return list(ids)
    values: list[Any] = ids.tolist()
    if ids.dtype.kind == "S":
        return [one.decode(errors="backslashreplace") for one in values]
    return values
