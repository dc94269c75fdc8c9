"""What a broken planner is told: one line that names it, what it must do, and the fix."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

from fedwave.errors import ConfigError
from fedwave.testing import ContractError, check_planner
from tests.testing.broken import complaint


@dataclass(frozen=True, eq=False)
class Around:
    """Passes everything on."""

    planner: Any

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.planner, name)


class AsksAll(Around):
    def ask(self, round_index: int, state: Any) -> Any:
        return np.arange(20)


class InvitesTheAbsent(Around):
    def plan(self, round_index: int, asked: Any, reports: Any, channel: Any, state: Any) -> Any:
        plan = self.planner.plan(round_index, asked, reports, channel, state)
        return replace(plan, selected=np.arange(2))


class TakesFromTheState(Around):
    def after(self, round_index: int, reports: Any, plan: Any, outcome: Any, state: Any) -> Any:
        state["history.times_selected"][0] += 1
        return self.planner.after(round_index, reports, plan, outcome, state)


class GrowsItsState(Around):
    def after(self, round_index: int, reports: Any, plan: Any, outcome: Any, state: Any) -> Any:
        after = self.planner.after(round_index, reports, plan, outcome, state)
        return {**after, "another": np.zeros(2)}


class Loud(Around):
    def plan(self, round_index: int, asked: Any, reports: Any, channel: Any, state: Any) -> Any:
        plan = self.planner.plan(round_index, asked, reports, channel, state)
        loud = replace(plan.allocation, transmit_power_w=np.full(9, 2.0))
        return replace(plan, allocation=loud)


class Blockless(Around):
    def plan(self, round_index: int, asked: Any, reports: Any, channel: Any, state: Any) -> Any:
        plan = self.planner.plan(round_index, asked, reports, channel, state)
        return replace(plan, selected=plan.selected[:1])


class Crowded(Around):
    def plan(self, round_index: int, asked: Any, reports: Any, channel: Any, state: Any) -> Any:
        plan = self.planner.plan(round_index, asked, reports, channel, state)
        shared = np.minimum(plan.allocation.block_of_device, 0)
        return replace(plan, allocation=replace(plan.allocation, block_of_device=shared))


class NoRadio(Around):
    def plan(self, round_index: int, asked: Any, reports: Any, channel: Any, state: Any) -> Any:
        return replace(
            self.planner.plan(round_index, asked, reports, channel, state), allocation=None, weights=None
        )


class KeepsNone(Around):
    max_models = 0


class HasNoBlocks(Around):
    num_blocks = 0


class SaysArrays(Around):
    def describe(self) -> Any:
        return {"battery_j": np.zeros(2)}


@dataclass(frozen=True, eq=False)
class Counts(Around):
    """Remembers in the object how often it was asked."""

    seen: list[int] = field(default_factory=list)

    def after(self, round_index: int, reports: Any, plan: Any, outcome: Any, state: Any) -> Any:
        self.seen.append(1)
        return self.planner.after(round_index, reports, plan, outcome, state)

    def ask(self, round_index: int, state: Any) -> Any:
        return np.arange(3 if self.seen else 2)


@pytest.mark.parametrize(
    ("planner", "message"),
    [
        (AsksAll, r"AsksAll\.ask must choose among \[0, 1, 2, .*\], got \[9, 10, 11"),
        (InvitesTheAbsent, r"plan must choose among \[\], got \[0, 1\]"),
        (TakesFromTheState, r"after must leave its inputs alone, got another .*history.times_selected"),
        (GrowsItsState, r"after must keep the arrays"),
        (Loud, r"plan must keep within max_power_w"),
        (Blockless, r"plan must give a block to those that it selects, \[\d\], got \["),
        (Crowded, r"plan must give each block to one device, got \[0, 0"),
        (NoRadio, r"plan must allocate the radio of a cell, got None"),
        (KeepsNone, r"max_models must be a whole number >= 1, got 0"),
        (HasNoBlocks, r"num_blocks must be a whole number >= 1, or None without a cell, got 0"),
        (SaysArrays, r"describe must return what JSON takes, got Object of type ndarray"),
        (Counts, r"ask must rest on the state alone, so that a run can be resumed"),
        (lambda planner: None, r"must have initial_state, ask, plan, .* got none of"),
    ],
)
def test_a_broken_planner_is_named_with_what_it_must_do(planner: Any, message: str) -> None:
    assert complaint(message, check_planner, planner)


def test_a_planner_without_faults_passes_and_an_error_is_an_assertion_too() -> None:
    check_planner(Around)
    check_planner(Around, over="ideal")
    with pytest.raises(AssertionError):
        check_planner(AsksAll)
    assert issubclass(ContractError, ConfigError.__mro__[1])
