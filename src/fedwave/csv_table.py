"""Reads CSV files in UTF-8; what is wrong with one is said in one line, with the number of the line."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

from fedwave.errors import FedwaveError, did_you_mean


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
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.reader(file, strict=True)
            for row in reader:
                line = reader.line_num
                if not (has_comments and _is_comment(row)):
                    rows.append(row)
                    lines.append(line)
    except OSError as reason:
        raise error(f"Cannot read the {what} {path}: {reason.strerror or reason}. {fix}") from reason
    except (ValueError, csv.Error) as reason:  # ValueError: not UTF-8, or a zero byte in the path
        why = str(reason) if isinstance(reason, csv.Error) else "no text in UTF-8"
        raise error(f"Cannot read the {what} {path} as CSV after line {line}: {why}. {fix}") from reason
    return rows, lines


def _is_comment(row: list[str]) -> bool:
    first = row[0].lstrip() if row else ""
    return first.startswith("#") or (not first and len(row) < 2)
