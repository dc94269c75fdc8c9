"""The tables of a run: the record of a round, column by column, and the headers that such a run has."""

from __future__ import annotations

from collections.abc import Set
from typing import Any

from numpy.typing import NDArray

from fedwave.metric import Metric
from fedwave.simulation.column import PLANNERS_OWN, Column
from fedwave.simulation.device_columns import DEVICE_COLUMNS, HELDOUT_COLUMNS
from fedwave.simulation.facts import RoundFacts, Trait
from fedwave.simulation.records import RoundRecord
from fedwave.simulation.round_columns import ROUND_COLUMNS

__all__ = ["DEVICE_COLUMNS", "HELDOUT_COLUMNS", "ROUND_COLUMNS", "Column", "record_round", "table_headers"]


def record_round(facts: RoundFacts) -> RoundRecord:
    """Return the record of a round: every column that applies."""
    columns = {
        column.name.format(metric=facts.run.metric.name): column.value(facts)
        for column in _applying(ROUND_COLUMNS, facts.run.traits)
    }
    device_columns: dict[str, NDArray[Any]] = {}
    for column in _applying(DEVICE_COLUMNS, facts.run.traits):
        value = column.value(facts)
        if column.name == PLANNERS_OWN:
            device_columns |= {column.name.format(own=own): one for own, one in value.items()}
        elif "{step}" in column.name:
            device_columns |= {column.name.format(step=step): one for step, one in enumerate(value)}
        else:
            device_columns[column.name] = value
    return RoundRecord(
        facts.round_index, columns, facts.run.device_ids, device_columns, facts.heldout, facts.plan
    )


def table_headers(metric: Metric, *, traits: Set[Trait], num_local_steps: int) -> dict[str, list[str]]:
    """Return the names of the columns that a run's tables have, in order, but for those of its planner."""
    num_shown = 1 if "steps" in traits else num_local_steps
    devices: list[str] = []
    for column in _applying(DEVICE_COLUMNS, traits):
        if column.name != PLANNERS_OWN:
            steps = range(num_shown) if "{step}" in column.name else range(1)
            devices += [column.name.format(step=step) for step in steps]
    rounds = [column.name.format(metric=metric.name) for column in _applying(ROUND_COLUMNS, traits)]
    heldout = [name.format(metric=metric.name) for name, _, _ in HELDOUT_COLUMNS]
    return {
        "rounds.csv": ["round", *rounds],
        "devices.csv": ["round", "device", *devices],
        "heldout.csv": ["round", "device", *heldout],
    }


def _applying(columns: tuple[Column, ...], traits: Set[Trait]) -> list[Column]:
    return [column for column in columns if column.needs is None or column.needs in traits]
