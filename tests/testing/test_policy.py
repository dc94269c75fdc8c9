"""What a broken policy or planner is told: one line that names it, what it must do, and the fix."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

from fedwave.errors import ConfigError
from fedwave.selection import TopContribution, Uniform
from fedwave.testing import ContractError, check_planner, check_policy
from tests.testing.broken import complaint


@dataclass(frozen=True)
class Chosen(TopContribution):
    """Selects as it likes; a test breaks one thing at a time."""

    def select(self, candidates: Any, *, rng: Any) -> Any:
        return candidates.device_index[self.positions(candidates, rng)]

    def positions(self, candidates: Any, rng: Any) -> Any:
        return np.arange(min(self.num_selected, len(candidates)))


class Unsorted(Chosen):
    def positions(self, candidates: Any, rng: Any) -> Any:
        return np.argsort(-candidates.contribution, kind="stable")[: self.num_selected]


class Repeated(Chosen):
    def positions(self, candidates: Any, rng: Any) -> Any:
        return np.zeros(min(2, len(candidates)), dtype=int)


class TooMany(Chosen):
    def positions(self, candidates: Any, rng: Any) -> Any:
        return np.arange(len(candidates))


class Positions(Chosen):
    def select(self, candidates: Any, *, rng: Any) -> Any:
        return np.arange(min(self.num_selected, len(candidates)))  # not the devices' indices


class Reals(Chosen):
    def select(self, candidates: Any, *, rng: Any) -> Any:
        return candidates.device_index[: self.num_selected].astype(float)


class Mutates(Chosen):
    def positions(self, candidates: Any, rng: Any) -> Any:
        candidates.contribution[:] = 0.0
        return super().positions(candidates, rng)


class OwnLuck(Chosen):
    def positions(self, candidates: Any, rng: Any) -> Any:
        count = min(self.num_selected, len(candidates))
        return np.sort(np.random.default_rng().choice(len(candidates), count, replace=False))


class NeedsSomebody(Chosen):
    def positions(self, candidates: Any, rng: Any) -> Any:
        return np.flatnonzero(candidates.contribution >= candidates.contribution.max())[: self.num_selected]


@dataclass(frozen=True)
class Peeks(Chosen):
    needs_reports: bool = False

    def positions(self, candidates: Any, rng: Any) -> Any:
        return np.flatnonzero(candidates.contribution > 0)[: self.num_selected]


class AsksStrangers(Chosen):
    def ask(self, candidates: Any, *, rng: Any) -> Any:
        return np.arange(61)


class Shy(Chosen):
    num_candidates = 0


@dataclass(frozen=True)
class Remembers(Uniform):
    """Keeps a round count in the object, which no checkpoint holds."""

    rounds: list[int] = field(default_factory=list)

    def ask(self, candidates: Any, *, rng: Any) -> Any:
        self.rounds.append(1)
        return candidates.device_index[: 1 + len(self.rounds) % 2]


class Forgets(Chosen):
    """Its state changes its shape."""

    def initial_state(self, num_devices: int) -> Any:
        return {"seen": np.zeros(num_devices)}

    def after(self, result: Any) -> Any:
        return {"seen": result.selected}


class Pickled(Chosen):
    def initial_state(self, num_devices: int) -> Any:
        return {"seen": np.array([{}] * num_devices)}

    def after(self, result: Any) -> Any:
        return result.state


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (Unsorted, r"Unsorted\.select must return sorted, distinct devices, got \[.*\]\. Return candidates"),
        (Repeated, r"select must return sorted, distinct devices"),
        (TooMany, r"select must choose at most num_selected = 1, got 2\. Take min"),
        (Positions, r"select must choose among \[.*\], got \["),
        (Reals, r"select must return a 1-D array of device indices, got array"),
        (Mutates, r"select must leave its inputs alone, got another .*contribution.* Work on a copy"),
        (OwnLuck, r"select must answer alike to the same inputs and the same rng"),
        (NeedsSomebody, r"select must answer whatever its contract allows, got ValueError: zero-size"),
        (Peeks, r"select with needs_reports = False must not look at reports"),
        (AsksStrangers, r"ask must choose among"),
        (Shy, r"ask must ask at most num_candidates = 0, got 1\."),
        (Remembers, r"ask must answer alike"),
        (Forgets, r"after must answer whatever .* names, shapes and types of initial_state"),
        (Pickled, r"initial_state must return an array of numbers as seen"),
        (lambda num_selected: Uniform(num_selected + 1), r"num_selected must be 1, got 2"),
        (lambda: Uniform(1), r"num_selected must be 3, got 1"),
        (lambda num_selected: object(), r"must have num_selected, needs_reports, ask, select, got none of"),
        (lambda num_selected: Uniform(num_selected, needs_reports=None), r"must be True or False, got None"),
        (lambda num_selected: 1 / 0, r"must be made of its options and what it is offered, got ZeroDivision"),
    ],
)
def test_a_broken_policy_is_named_with_what_it_must_do(policy: Any, message: str) -> None:
    assert complaint(message, check_policy, policy)


def test_a_policy_without_faults_passes_by_class_function_and_name() -> None:
    check_policy(Chosen)
    check_policy(lambda num_selected: Chosen(num_selected))
    check_policy("tests.testing.test_policy:Chosen")
    check_policy("power-of-choice", num_candidates=30)
    with pytest.raises(ConfigError, match="has no option 'price'"):
        check_policy(Chosen, price=1.0)
    with pytest.raises(ConfigError, match='got "unifrom". Did you mean "uniform"'):
        check_policy("unifrom")


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
