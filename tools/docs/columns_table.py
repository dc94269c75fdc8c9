"""The tables of columns in docs/run-folder.md, made from ``fedwave.simulation.columns``."""

from __future__ import annotations

from collections.abc import Iterable

from fedwave.runs.tables import DEVICES, HELDOUT, ROUNDS
from fedwave.simulation.column import PLANNERS_OWN, Column
from fedwave.simulation.columns import DEVICE_COLUMNS, HELDOUT_COLUMNS, ROUND_COLUMNS
from tools.docs.pages import escape

# The columns that say where a row belongs. They are the same for every run.
ROUND = ("round", "integer", "", "k, from 0")
DEVICE = ("device", "integer", "", "the device's number in the partition")


def columns_table(name: str) -> str:
    """Return the table of the columns of rounds.csv, devices.csv or heldout.csv."""
    rows = {
        ROUNDS: [ROUND, *_declared(ROUND_COLUMNS)],
        DEVICES: [ROUND, DEVICE, *_declared(DEVICE_COLUMNS)],
        HELDOUT: [ROUND, DEVICE, *((name, kind, "", meaning) for name, kind, meaning in HELDOUT_COLUMNS)],
    }[name]
    lines = [f"| `{column}` | {kind} | {cell} | {escape(meaning)} |" for column, kind, cell, meaning in rows]
    return "\n".join(["| column | type | | meaning |", "|---|---|---|---|", *lines, ""])


def _declared(columns: Iterable[Column]) -> list[tuple[str, str, str, str]]:
    return [(column.name, column.kind, _where(column), column.meaning) for column in columns]


def _where(column: Column) -> str:
    """Return which runs have the column: all, those with a trait, or by their planner."""
    return "planner" if column.name == PLANNERS_OWN else column.needs or ""
