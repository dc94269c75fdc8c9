"""Reads the user's own split from a CSV or NPZ file: a column of device ids, in the order of the dataset."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedwave.csv_table import read_table
from fedwave.data.device_ids import NOBODY
from fedwave.data.formats.npz import read_npz
from fedwave.data.user_split import UserSplit, as_flags, user_split
from fedwave.errors import DataError
from fedwave.units import BoolArray

FLAG_OF_WORD = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}


def read_split(
    path: Path | str,
    *,
    num_samples: int,
    device_column: str = "device",
    heldout_column: str | None = None,
    support_column: str | None = None,
) -> UserSplit:
    """Return the split in a file with one row per sample, in the order of the dataset.

    A .npz file holds arrays of these names (no pickle is read), any other file is CSV with a header. What
    else the file holds is not read. An empty id is a sample that nobody owns. Held-out and support are 1 or
    0; in CSV also true or false, yes or no.
    """
    file = Path(path).expanduser()
    wanted = [name for name in (device_column, heldout_column, support_column) if name is not None]
    is_npz = file.suffix.lower() == ".npz"
    columns: dict[str, Any] = _npz_columns(file, wanted) if is_npz else _csv_columns(file, wanted)
    for name in wanted:
        if len(columns[name]) != num_samples:
            raise DataError(
                f"{file} has {len(columns[name])} rows of {name}, but the dataset has {num_samples} samples. "
                "Give one row per sample, in the order of the dataset."
            )
    ids = columns[device_column]
    is_heldout = None if heldout_column is None else _flags(columns, heldout_column, ids, file)
    is_support = None if support_column is None else _flags(columns, support_column, ids, file)
    return user_split(ids, is_heldout=is_heldout, is_support=is_support, name=str(file))


def _npz_columns(file: Path, wanted: Sequence[str]) -> dict[str, NDArray[Any]]:
    """Return the arrays of those names."""
    arrays = read_npz(file, required=wanted, fix=f"Save plain arrays with: np.savez(file, {wanted[0]}=ids)")
    for name, array in arrays.items():
        if array.ndim != 1:
            raise DataError(
                f"{file}: {name} must hold one value per sample, got shape {array.shape}. Use one column."
            )
    return arrays


def _csv_columns(file: Path, wanted: Sequence[str]) -> dict[str, list[str]]:
    """Return the columns of those names as text."""
    table = read_table(file, what="split file", error=DataError, fix="Give the path of a CSV file in UTF-8.")
    return {name: table.column(name) for name in wanted}


def _flags(columns: dict[str, Any], name: str, ids: Sequence[Any], file: Path) -> BoolArray:
    """Return the column as one bool per sample; a sample of nobody may leave it empty in CSV."""
    column = columns[name]
    if isinstance(column, np.ndarray):
        return as_flags(column, len(ids), what=f"{file}: {name}")
    flags = []
    for sample, (word, device_id) in enumerate(zip(column, ids, strict=True)):
        flag = FLAG_OF_WORD.get(word.lower())
        if flag is None and (word or device_id not in NOBODY):
            raise DataError(
                f'{file} has {name} = "{word}" for sample {sample} (from 0). Write 1 or 0, true or false.'
            )
        flags.append(bool(flag))
    return np.array(flags, dtype=np.bool_)
