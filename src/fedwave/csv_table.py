"""Reads CSV files in UTF-8; what is wrong with one is said in one line, with the number of the line."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fedwave.errors import FedwaveError, ProblemError, did_you_mean
from fedwave.files import read_text
from fedwave.units import other_units

DEVICE = "device"  # the column that says which row is whose
# Python's own limit, 131,072 characters, is less than the list of some 22,000 selected devices in one cell.
csv.field_size_limit(2**31 - 1)


@dataclass(frozen=True, eq=False)
class CsvTable:
    """A header and rows of its length, as text. ``lines`` says on which line, from 1, each row ends."""

    name: str  # of the file, in messages
    error: type[FedwaveError]
    header: list[str]
    rows: list[list[str]]
    lines: list[int]

    def column(self, name: str) -> list[str]:
        """Return the cells of a column, without the blanks around them."""
        if name not in self.header:
            raise self.error(f'{self.name} has no column "{name}". {did_you_mean(name, self.header)}')
        place = self.header.index(name)
        return [row[place].strip() for row in self.rows]


def read_table(
    path: Path, *, what: str, error: type[FedwaveError], fix: str, has_comments: bool = False
) -> CsvTable:
    """Return a file whose first row names the columns; refuse rows of another length and equal names.

    A blank line is an empty cell where there is one column, and nothing where there are more. The arguments
    are those of ``read_rows``.
    """
    rows, lines = read_rows(path, what=what, error=error, fix=fix, has_comments=has_comments)
    name = f"The {what} {path}"
    header = [cell.strip() for cell in rows[0]] if rows else []
    if not header:
        raise error(f"{name} is empty. Its first row must name the columns.")
    twice = next((cell for cell in header if header.count(cell) > 1), None)
    if twice is not None:
        raise error(f'{name} has two columns "{twice}". Keep one of them, or give each a name of its own.')
    table = CsvTable(name, error, header, [], [])
    for row, line in zip(rows[1:], lines[1:], strict=True):
        cells = row or [""] * (len(header) == 1)
        if len(cells) not in (0, len(header)):
            raise error(
                f"{name} has {len(cells)} values in line {line}, but {len(header)} columns. Fill every "
                "column; put text that holds commas in quotes."
            )
        if cells:
            table.rows.append(cells)
            table.lines.append(line)
    return table


def read_rows(
    path: Path, *, what: str, error: type[FedwaveError], fix: str, has_comments: bool = False
) -> tuple[list[list[str]], list[int]]:
    """Return all rows of a file and the line, from 1, that each ends on.

    ``what`` the file is and ``fix`` go into the messages of ``error``. ``has_comments`` leaves out lines that
    begin with #, and blank ones.
    """
    rows: list[list[str]] = []
    lines: list[int] = []
    line = 0
    try:
        reader = csv.reader(StringIO(read_text(path), newline=""), strict=True)
        for row in reader:
            line = reader.line_num
            if not (has_comments and _is_comment(row)):
                rows.append(row)
                lines.append(line)
    except OSError as reason:
        raise error(f"Cannot read the {what} {path}: {reason.strerror or reason}. {fix}") from reason
    except (ValueError, csv.Error) as reason:  # ValueError: not UTF-8, or a zero byte in the path
        if isinstance(reason, UnicodeDecodeError):
            line = reason.object.count(b"\n", 0, reason.start)
        why = str(reason) if isinstance(reason, csv.Error) else "no text in UTF-8"
        raise error(f"Cannot read the {what} {path} as CSV after line {line}: {why}. {fix}") from reason
    return rows, lines


def csv_rows(text: str) -> list[list[str]]:
    """Return the rows of a text; raise a ``csv.Error`` if it is no CSV."""
    return list(csv.reader(StringIO(text, newline=""), strict=True))


def _is_comment(row: list[str]) -> bool:
    first = row[0].lstrip() if row else ""
    return first.startswith("#") or (not first and len(row) < 2)


def read_columns(
    path: Path,
    *,
    known: tuple[str, ...],
    what: str,
    num_devices: int | None = None,
    required: tuple[str, ...] = (),
) -> dict[str, NDArray[np.float64]]:
    """Return the named numeric columns of the file, one value per device in the order of the devices.

    Rows are the devices 0, 1, 2, ... in this order, unless a column ``device`` gives their numbers: then
    each row goes to its own device. ``num_devices`` None takes as many devices as there are rows. A column in
    other units, such as ``max_power_dbm``, comes back as ``max_power_w``.
    """
    spelt = {other: (name, to_si) for name in known for other, to_si in other_units(name).items()}
    table = read_table(
        path, what=f"{what} file", error=ProblemError, fix="Check the path.", has_comments=True
    )
    _require_header(table, known=(*known, *spelt), required=required)
    if num_devices is not None and len(table.rows) != num_devices:
        raise ProblemError(
            f"{table.name} has {len(table.rows)} devices, but the cell has {num_devices}. "
            "Give one row per device."
        )
    if not table.rows:
        raise ProblemError(f"{table.name} has a header and no devices. Give one row per device.")
    place = _places(table)
    columns: dict[str, NDArray[np.float64]] = {}
    for name in table.header:
        if name == DEVICE:
            continue
        values = np.empty(len(table.rows))
        for index, text in enumerate(table.column(name)):
            values[place[index]] = _number(text, name, int(place[index]), table, index)
        target, to_si = spelt.get(name, (name, _as_it_is))
        if target in columns:
            raise ProblemError(f"{table.name} gives {target} twice (as {name}, too). Keep one.")
        with np.errstate(over="ignore"):  # what becomes infinite is refused by whoever asked for it
            columns[target] = np.asarray(to_si(values))
    return columns


def _as_it_is(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return values


def _require_header(table: CsvTable, *, known: tuple[str, ...], required: tuple[str, ...]) -> None:
    for name in table.header:
        if name not in known and name != DEVICE:
            raise ProblemError(f'{table.name} has an unknown column "{name}". {did_you_mean(name, known)}')
    for name in required:
        if name not in table.header:
            raise ProblemError(
                f'{table.name} has no column "{name}". Its header is: {", ".join(table.header)}.'
            )


def _places(table: CsvTable) -> NDArray[np.int64]:
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
            f'{table.name} has {name} = "{text[:40]}" for device {device} in line {table.lines[index]}. '
            "Write a number."
        ) from None
