"""Reads a CSV with a header row and one row per device; a column ``device`` says which row is whose."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

from fedwave.errors import ProblemError, did_you_mean
from fedwave.units import FloatArray, IntArray

DEVICE = "device"


def read_columns(
    path: Path,
    *,
    known: tuple[str, ...],
    what: str,
    num_devices: int | None = None,
    required: tuple[str, ...] = (),
) -> dict[str, FloatArray]:
    """Return the named numeric columns of the file, one value per device in the order of the devices.

    Rows are the devices 0, 1, 2, ... in this order, unless a column ``device`` gives their numbers: then
    each row goes to its own device. ``num_devices`` None takes as many devices as there are rows.
    """
    header, rows = _read(path, known, what)
    _require_header(header, path, known=known, required=required, what=what)
    if num_devices is not None and len(rows) != num_devices:
        raise ProblemError(
            f"The {what} file {path} has {len(rows)} devices, but the cell has {num_devices}. "
            "Give one row per device."
        )
    for index, row in enumerate(rows):
        if len(row) != len(header):
            raise ProblemError(
                f"The {what} file {path} has {len(row)} values for device {index}, but "
                f"{len(header)} columns. Fill every column."
            )
    place = _places(header, rows, path, what)
    columns: dict[str, FloatArray] = {}
    for column, name in enumerate(header):
        if name == DEVICE:
            continue
        columns[name] = np.empty(len(rows))
        for index, row in enumerate(rows):
            columns[name][place[index]] = _number(row[column], name, int(place[index]), path, what)
    return columns


def _read(path: Path, known: tuple[str, ...], what: str) -> tuple[list[str], list[list[str]]]:
    """Return the header and the rows; blank lines and lines that begin with # are left out."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = [row for row in csv.reader(file) if row and not row[0].lstrip().startswith("#")]
    except (OSError, ValueError, csv.Error) as error:  # ValueError: not UTF-8, or a zero byte in the name
        reason = getattr(error, "strerror", None) or "not a text file"
        raise ProblemError(f"Cannot read the {what} file {path}: {reason}. Check the path.") from error
    if not rows:
        raise ProblemError(
            f"The {what} file {path} is empty. Its first row must name columns: {_shortened(known)}."
        )
    return [name.strip() for name in rows[0]], rows[1:]


def _require_header(
    header: list[str], path: Path, *, known: tuple[str, ...], required: tuple[str, ...], what: str
) -> None:
    for index, name in enumerate(header):
        if name not in known and name != DEVICE:
            raise ProblemError(
                f'The {what} file {path} has an unknown column "{name}". {did_you_mean(name, known)}'
            )
        if name in header[:index]:
            raise ProblemError(f'The {what} file {path} has two columns "{name}". Keep one of them.')
    for name in required:
        if name not in header:
            raise ProblemError(
                f'The {what} file {path} has no column "{name}". Its header is: {", ".join(header)}.'
            )


def _places(header: list[str], rows: list[list[str]], path: Path, what: str) -> IntArray:
    """Return each row's device: its number in the column ``device``, or else the number of the row."""
    if DEVICE not in header:
        return np.arange(len(rows))
    column = header.index(DEVICE)
    row_of_device: dict[int, int] = {}
    for index, row in enumerate(rows):
        text = row[column].strip()
        number = int(text) if text.isascii() and text.isdigit() and len(text) < 19 else -1
        if not 0 <= number < len(rows):
            raise ProblemError(
                f'The {what} file {path} has an unknown device "{text}". Its {len(rows)} rows are the '
                f"devices 0 to {len(rows) - 1}, in any order; or leave the column out."
            )
        if number in row_of_device:
            raise ProblemError(
                f"The {what} file {path} has device {number} twice, in rows {row_of_device[number]} and "
                f"{index} (from 0). Give one row per device."
            )
        row_of_device[number] = index
    return np.array(list(row_of_device), dtype=np.int64)


def _number(text: str, name: str, device: int, path: Path, what: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ProblemError(
            f'The {what} file {path} has {name} = "{text}" for device {device}. Write a number.'
        ) from None


def _shortened(known: tuple[str, ...]) -> str:
    return ", ".join(known[:12]) + (", ..." if len(known) > 12 else "")
