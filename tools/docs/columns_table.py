"""The tables of columns in docs/run-folder.md, made from ``fedwave.simulation.columns``."""

from __future__ import annotations

from collections.abc import Iterable

from fedwave.runs.tables import DEVICES, HELDOUT, ROUNDS
from fedwave.simulation.columns import DEVICE_COLUMNS, HELDOUT_COLUMNS, PLANNERS_OWN, ROUND_COLUMNS
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


def _declared(columns: Iterable[object]) -> list[tuple[str, str, str, str]]:
    return [
        (column.name, column.kind, _where(column), column.meaning)  # type: ignore[attr-defined]
        for column in columns
    ]


def _where(column: object) -> str:
    """Return which runs have the column: all, over a cell, on batteries, with estimates, or by planner."""
    if column.name == PLANNERS_OWN:  # type: ignore[attr-defined]
        return "planner"
    if column.needs_battery:  # type: ignore[attr-defined]
        return "battery"
    if column.needs_estimation:  # type: ignore[attr-defined]
        return "estimation"
    if column.needs_penalties:  # type: ignore[attr-defined]
        return "penalties"
    if column.needs_chosen_steps:  # type: ignore[attr-defined]
        return "steps"
    if column.needs_shares:  # type: ignore[attr-defined]
        return "access"
    return "cell" if column.needs_cell else ""  # type: ignore[attr-defined]
