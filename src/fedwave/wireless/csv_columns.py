"""Reads a CSV with a header row and one row per device."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

from fedwave.errors import ProblemError, did_you_mean
from fedwave.units import FloatArray


def read_columns(
    path: Path, *, known: tuple[str, ...], num_devices: int, what: str, required: tuple[str, ...] = ()
) -> dict[str, FloatArray]:
    """Return the named numeric columns of the file; a column called ``device`` is allowed and skipped."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = [row for row in csv.reader(file) if row and not row[0].lstrip().startswith("#")]
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not a text file"
        raise ProblemError(f"Cannot read the {what} file {path}: {reason}. Check the path.") from error
    if not rows:
        raise ProblemError(
            f"The {what} file {path} is empty. Its first row must name columns: {', '.join(known)}."
        )
    header = [name.strip() for name in rows[0]]
    for name in header:
        if name not in known and name != "device":
            raise ProblemError(
                f'The {what} file {path} has an unknown column "{name}". {did_you_mean(name, known)}'
            )
    for name in required:
        if name not in header:
            raise ProblemError(
                f'The {what} file {path} has no column "{name}". Its header is: {", ".join(header)}.'
            )
    if len(rows) - 1 != num_devices:
        raise ProblemError(
            f"The {what} file {path} has {len(rows) - 1} devices, but the cell has {num_devices}. "
            "Give one row per device."
        )
    columns: dict[str, FloatArray] = {name: np.empty(num_devices) for name in header if name != "device"}
    for row_index, row in enumerate(rows[1:]):
        if len(row) != len(header):
            raise ProblemError(
                f"The {what} file {path} has {len(row)} values for device {row_index}, but "
                f"{len(header)} columns. Fill every column."
            )
        for name, text in zip(header, row, strict=True):
            if name == "device":
                continue
            try:
                columns[name][row_index] = float(text)
            except ValueError:
                raise ProblemError(
                    f'The {what} file {path} has {name} = "{text}" for device {row_index}. Write a number.'
                ) from None
    return columns
