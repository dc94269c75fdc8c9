"""Reads the user's own split from a CSV or NPZ file: a column of device ids, in the order of the dataset."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedwave.data.device_ids import NOBODY
from fedwave.data.formats.npz import read_npz
from fedwave.data.user_split import UserSplit, as_flags, user_split
from fedwave.errors import DataError, did_you_mean
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
    """Return the columns of those names as text, without the blanks around it."""
    header, rows = _csv_rows(file)
    twice = next((name for name in header if header.count(name) > 1), None)
    if twice is not None:
        raise DataError(f'{file} has two columns "{twice}". Give each column a name of its own.')
    for name in wanted:
        if name not in header:
            raise DataError(f'{file} has no column "{name}". {did_you_mean(name, header)}')
    places = {name: header.index(name) for name in wanted}
    return {name: [row[place].strip() for row in rows] for name, place in places.items()}


def _csv_rows(file: Path) -> tuple[list[str], list[list[str]]]:
    """Return the header and the rows, all of its length; a blank line is an empty cell, or nothing."""
    header: list[str] = []
    rows = []
    try:
        with file.open(newline="", encoding="utf-8-sig") as stream:
            reader = csv.reader(stream, strict=True)
            header = [name.strip() for name in next(reader, [])]
            for row in reader:
                if len(row) == len(header):
                    rows.append(row)
                elif not row and len(header) == 1:
                    rows.append([""])
                elif row:
                    raise DataError(
                        f"{file}, line {reader.line_num}: {len(row)} values for {len(header)} columns. "
                        "Fill every column; put text that holds commas in quotes."
                    )
    except FileNotFoundError as error:
        raise DataError(f"{file} does not exist. Correct the path of the split.") from error
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        reason = getattr(error, "strerror", None) or str(error).splitlines()[0]
        raise DataError(f"{file} cannot be read as CSV ({reason}). Save it as CSV in UTF-8.") from error
    if not header:
        raise DataError(f"{file} has no header. Its first row must name the columns.")
    return header, rows


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
