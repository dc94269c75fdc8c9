"""The tables of a run folder as text: written to the last bit, read back by declared type."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fedwave.csv_table import csv_rows
from fedwave.errors import RunError
from fedwave.files import blocks_of, open_file, read_bytes, text_of
from fedwave.simulation.column import Kind, kind_of
from fedwave.simulation.columns import DEVICE_COLUMNS, HELDOUT_COLUMNS, ROUND_COLUMNS
from fedwave.simulation.records import RoundRecord
from fedwave.units import IntArray

_LONGEST_HEADER = 1 << 20
ROUNDS = "rounds.csv"
DEVICES = "devices.csv"
HELDOUT = "heldout.csv"

# The declared columns of each table; the first two say where a row belongs.
TABLES: dict[str, tuple[tuple[str, Kind], ...]] = {
    ROUNDS: (("round", "integer"), *((column.name, column.kind) for column in ROUND_COLUMNS)),
    DEVICES: (
        ("round", "integer"),
        ("device", "integer"),
        *((column.name, column.kind) for column in DEVICE_COLUMNS),
    ),
    HELDOUT: (
        ("round", "integer"),
        ("device", "integer"),
        *((name, kind) for name, kind, _ in HELDOUT_COLUMNS),
    ),
}


def rows_of(record: RoundRecord) -> dict[str, tuple[list[str], list[list[Any]]]]:
    """Return a round's header and rows for each table."""
    k = record.round_index
    columns = record.device_columns
    per_device = zip(
        record.device_ids.tolist(), *(values.tolist() for values in columns.values()), strict=True
    )
    tables = {
        ROUNDS: (["round", *record.columns], [[k, *record.columns.values()]]),
        DEVICES: (["round", "device", *columns], [[k, *row] for row in per_device]),
    }
    if record.heldout is not None:
        result = record.heldout
        rows = zip(
            result.device_ids.tolist(),
            result.num_query.tolist(),
            result.loss.tolist(),
            result.metric.tolist(),
            strict=True,
        )
        header = ["round", "device", "num_query", "loss", result.measured.name]
        tables[HELDOUT] = (header, [[k, *row] for row in rows])
    return tables


def to_csv(rows: Iterable[Sequence[Any]], header: Sequence[str] | None = None) -> str:
    """Return rows as CSV text, with a header if one is given."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    if header is not None:
        writer.writerow(header)
    writer.writerows([_written(value) for value in row] for row in rows)
    return text.getvalue()


def read_table(path: Path, *, required: Sequence[str] = ()) -> dict[str, Any]:
    """Return the columns of a table by name; ``required`` are those that it must have.

    Numbers are float arrays (NaN where empty), counts are integer arrays, text is a list of strings, and a
    list of devices is a list of integer arrays. A column that is not declared stays text. The half last line
    of a run that was killed is left out.
    """
    try:
        content = read_bytes(path)
    except OSError as error:
        if isinstance(error, FileNotFoundError) and path.name == ROUNDS:
            raise RunError(f"{path.parent} has no round yet. Let the run finish one first.") from error
        raise RunError(f"cannot read {path}: {error.strerror}. Give the folder of a run.") from error
    header, *rows = rows_of_bytes(path, content) or [[]]
    if not rows:
        raise RunError(f"{path} has no rounds yet. Let the run finish a round first.")
    columns = typed_columns(path, header, rows)
    for name in required:
        if name not in columns:
            raise _not_as_written(path, f'it has no column "{name}"')
    return columns


def header_of(path: Path) -> list[str]:
    """Return the names in a table's first line."""
    with open_file(path) as file:
        first = next(blocks_of(file, _LONGEST_HEADER), b"").partition(b"\n")[0]
    return first.decode(errors="replace").split(",")


def rows_of_bytes(path: Path, content: bytes) -> list[list[str]]:
    """Return the rows in the whole lines of a table, or of a part of it."""
    num_whole = content.rfind(b"\n") + 1
    try:
        text = text_of(content[:num_whole] or content)
        return csv_rows(text) if num_whole else []
    except UnicodeDecodeError as error:
        raise _not_as_written(path, "it is no text in UTF-8; did another program save it?") from error
    except csv.Error as error:
        raise _not_as_written(path, str(error)) from error


def typed_columns(
    path: Path, header: Sequence[str], rows: Sequence[Sequence[str]], *, first_line: int = 2
) -> dict[str, Any]:
    """Return rows of text as columns, each by the type that is declared for its name in that table.

    A table has the columns that say where a row belongs, and its rounds are in order.
    """
    declared = TABLES.get(path.name, ())
    places = [name for name, _ in declared if name in ("round", "device")]
    missing = [name for name in places if name not in header]
    if missing or len(set(header)) < len(header):
        why = f'it has no column "{missing[0]}"' if missing else "it has two columns of one name"
        raise _not_as_written(path, f"{why}; it begins with {','.join(header)[:60]!r}")
    for line, row in enumerate(rows, start=first_line):
        if len(row) != len(header):
            raise _not_as_written(path, f"line {line} has {len(row)} of {len(header)} values")
    try:
        columns = {
            name: _read(kind_of(name, declared), texts)
            for name, texts in zip(header, zip(*rows, strict=True), strict=True)
        }
    except (ValueError, OverflowError) as error:
        raise _not_as_written(path, str(error)) from error
    if "round" in places:
        require_order(path, columns["round"])
    return columns


def require_order(path: Path, rounds: IntArray) -> None:
    """Raise if a table's rounds go backwards, or if there is one twice where each has a single row."""
    before, after = rounds[:-1], rounds[1:]
    is_back = after <= before if path.name == ROUNDS else after < before
    if rounds[0] < 0 or is_back.any():
        raise _not_as_written(path, "its rounds are not in order")


def _not_as_written(path: Path, why: str) -> RunError:
    return RunError(f"{path} is not as the run wrote it ({why}). Restore it; tables are not to be edited.")


def _written(value: Any) -> Any:
    """Return how a value stands in a table: floats to the last bit, nothing for what was not measured."""
    if isinstance(value, list):
        return " ".join(map(str, value))
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    return repr(value) if isinstance(value, float) else value


def _read(kind: Kind | None, texts: Sequence[str]) -> Any:
    if kind == "integer":
        return np.array([int(text) for text in texts], dtype=np.int64)
    if kind == "number":
        return np.array([float(text) if text else np.nan for text in texts])
    if kind == "devices":
        return [np.array(text.split(), dtype=np.int64) for text in texts]
    return list(texts)
