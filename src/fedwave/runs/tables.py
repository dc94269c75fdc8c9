"""The tables of a run folder as text: written to the last bit, read back by declared type."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fedwave.errors import RunError
from fedwave.simulation.columns import DEVICE_COLUMNS, HELDOUT_COLUMNS, ROUND_COLUMNS, Kind, kind_of
from fedwave.simulation.records import RoundRecord

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


def read_table(path: Path) -> dict[str, Any]:
    """Return the columns of a table by name.

    Numbers are float arrays (NaN where empty), counts are integer arrays, text is a list of strings, and a
    list of devices is a list of integer arrays. A column that is not declared stays text.
    """
    try:
        with path.open(newline="", encoding="utf-8") as file:
            header, *rows = list(csv.reader(file))
    except OSError as error:
        raise RunError(f"cannot read {path}: {error.strerror}. Give the folder of a run.") from error
    except (ValueError, csv.Error):
        header, rows = [], []
    if not rows:
        raise RunError(f"{path} has no rounds yet. Let the run finish a round first.")
    try:
        return typed_columns(path.name, header, rows)
    except (ValueError, OverflowError) as error:
        raise RunError(
            f"{path} is not as the run wrote it ({error}). Restore it; tables are not to be edited."
        ) from error


def typed_columns(table: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> dict[str, Any]:
    """Return rows of text as columns, each by the type that is declared for its name in that table."""
    declared = TABLES.get(table, ())
    columns = zip(*rows, strict=True)
    return {name: _read(kind_of(name, declared), texts) for name, texts in zip(header, columns, strict=True)}


def round_of(line: str) -> int:
    """Return the round that a table's line belongs to: its first column; -1 if it has none."""
    text = line.partition(",")[0]
    return int(text) if text.isascii() and text.isdigit() else -1


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
