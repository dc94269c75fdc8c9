"""Reads a CSV with a header row and one row per device; a column ``device`` says which row is whose."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from fedwave.csv_table import CsvTable, read_table
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
    table = read_table(
        path, what=f"{what} file", error=ProblemError, fix="Check the path.", has_comments=True
    )
    _require_header(table, known=known, required=required)
    if num_devices is not None and len(table.rows) != num_devices:
        raise ProblemError(
            f"{table.name} has {len(table.rows)} devices, but the cell has {num_devices}. "
            "Give one row per device."
        )
    place = _places(table)
    columns: dict[str, FloatArray] = {}
    for name in table.header:
        if name == DEVICE:
            continue
        columns[name] = np.empty(len(table.rows))
        for index, text in enumerate(table.column(name)):
            columns[name][place[index]] = _number(text, name, int(place[index]), table, index)
    return columns


def _require_header(table: CsvTable, *, known: tuple[str, ...], required: tuple[str, ...]) -> None:
    for name in table.header:
        if name not in known and name != DEVICE:
            raise ProblemError(f'{table.name} has an unknown column "{name}". {did_you_mean(name, known)}')
    for name in required:
        if name not in table.header:
            raise ProblemError(
                f'{table.name} has no column "{name}". Its header is: {", ".join(table.header)}.'
            )


def _places(table: CsvTable) -> IntArray:
    """Return each row's device: its number in the column ``device``, or else the number of the row."""
    num_rows = len(table.rows)
    if DEVICE not in table.header:
        return np.arange(num_rows)
    line_of_device: dict[int, int] = {}
    for text, line in zip(table.column(DEVICE), table.lines, strict=True):
        number = int(text) if text.isascii() and text.isdigit() and len(text) < 19 else -1
        if not 0 <= number < num_rows:
            raise ProblemError(
                f'{table.name} has an unknown device "{text}" in line {line}. Its {num_rows} rows are the '
                f"devices 0 to {num_rows - 1}, in any order; or leave the column out."
            )
        if number in line_of_device:
            raise ProblemError(
                f"{table.name} has device {number} twice, in lines {line_of_device[number]} and {line}. "
                "Give one row per device."
            )
        line_of_device[number] = line
    return np.array(list(line_of_device), dtype=np.int64)


def _number(text: str, name: str, device: int, table: CsvTable, index: int) -> float:
    try:
        return float(text)
    except ValueError:
        raise ProblemError(
            f'{table.name} has {name} = "{text}" for device {device} in line {table.lines[index]}. '
            "Write a number."
        ) from None
