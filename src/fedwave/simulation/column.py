"""What a column of the tables is: its name, type, meaning and value, and which runs have it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from fedwave.simulation.facts import RoundFacts, Trait

Kind = Literal["integer", "number", "text", "devices"]
PLANNERS_OWN = "planner_{own}"  # of devices.csv


@dataclass(frozen=True)
class Column:
    """A column of a table. ``{metric}`` in a name is the task's metric, ``{step}`` each local step.

    ``{own}`` is each column that a planner gives with its plans.
    """

    name: str
    kind: Kind
    meaning: str
    value: Callable[[RoundFacts], Any]
    needs: Trait | None = None  # only runs that have it have the column


def of_allocation(name: str) -> Callable[[RoundFacts], Any]:
    """Return how a column follows from the plan's allocation."""
    return lambda facts: getattr(facts.plan.allocation, name)


def of_costs(name: str) -> Callable[[RoundFacts], Any]:
    """Return how a column follows from what the round cost."""
    return lambda facts: getattr(facts.costs, name)


def of_ledger(name: str) -> Callable[[RoundFacts], Any]:
    """Return how a column follows from the account after the round."""
    return lambda facts: getattr(facts.ledger, name)


def kind_of(name: str, columns: Sequence[tuple[str, Kind]]) -> Kind | None:
    """Return the declared type of a column by its name; None if none is declared."""
    for declared, kind in columns:
        pattern = re.escape(declared).replace(r"\{metric\}", "[a-z_]+").replace(r"\{step\}", r"\d+")
        pattern = pattern.replace(r"\{own\}", "[a-z][a-z0-9_]*")
        if re.fullmatch(pattern, name):
            return kind
    return None
