"""What a planner is: reports and channel in, a plan out, and it hears what became of it.

Usable by any server, simulated or real. A planner remembers nothing itself: what it must know in the next
round it returns, as arrays by name that any checkpoint can hold.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol, Self

from numpy.typing import NDArray

from fedwave.server.outcome import Outcome
from fedwave.server.plan import Plan
from fedwave.server.real_devices import CellReports
from fedwave.server.reports import Reports
from fedwave.units import IntArray
from fedwave.wireless.terms import ChannelDraw

PlannerState = Mapping[str, NDArray[Any]]

MIN_KEPT_MODELS = 256  # any device may be chosen: keep the likeliest, the few others compute again


class Planner(Protocol):
    """Decides, round by round, who computes and who uploads how.

    ``PlannerDefaults`` has all members but ``ask`` and ``plan``; ``PlannerAround`` changes another planner.
    """

    def initial_state(self) -> PlannerState:
        """Return the state before the first round."""
        ...

    def ask(self, round_index: int, state: PlannerState) -> IntArray:
        """Return who computes in this round, as sorted device indices."""
        ...

    def plan(
        self,
        round_index: int,
        asked: IntArray,
        reports: Reports,
        channel: ChannelDraw | None,
        state: PlannerState,
    ) -> Plan:
        """Return who uploads and how, given whom it had asked and what they report."""
        ...

    def after(
        self, round_index: int, reports: Reports, plan: Plan, outcome: Outcome, state: PlannerState
    ) -> PlannerState:
        """Return the state for the next round, given what became of the plan."""
        ...

    def with_devices(
        self, *, present: IntArray, num_samples: IntArray, told: CellReports | None = None
    ) -> Planner:
        """Return the planner for real devices: who can be reached, and what they said of their radio."""
        ...

    @property
    def max_models(self) -> int:
        """How many local models are worth keeping until the plan is made: those that contribute most."""
        ...

    @property
    def num_blocks(self) -> int | None:
        """How many blocks the cell has that it plans over; None: it has none, and radios play no part."""
        ...

    def describe(self) -> Mapping[str, Any]:
        """Return what a summary should say of it, as JSON takes it."""
        ...


class PlannerDefaults:
    """The members of a planner that remembers nothing and plans alike for all devices; subclass it."""

    def initial_state(self) -> PlannerState:
        """Return no state."""
        return {}

    def after(
        self, round_index: int, reports: Reports, plan: Plan, outcome: Outcome, state: PlannerState
    ) -> PlannerState:
        """Return the state as it was."""
        del round_index, reports, plan, outcome
        return state

    def with_devices(
        self, *, present: IntArray, num_samples: IntArray, told: CellReports | None = None
    ) -> Self:
        """Return the planner as it is."""
        del present, num_samples, told
        return self

    @property
    def max_models(self) -> int:
        """Enough for a choice among hundreds."""
        return MIN_KEPT_MODELS

    @property
    def num_blocks(self) -> int | None:
        """No cell."""
        return None

    def describe(self) -> Mapping[str, Any]:
        """Return nothing to say."""
        return {}


@dataclass(frozen=True, eq=False)
class PlannerAround:
    """A planner around another one, which it asks for everything; a subclass changes what it likes."""

    planner: Planner

    def initial_state(self) -> PlannerState:
        """Return the inner planner's first state."""
        return self.planner.initial_state()

    def ask(self, round_index: int, state: PlannerState) -> IntArray:
        """Return whom the inner planner asks."""
        return self.planner.ask(round_index, state)

    def plan(
        self,
        round_index: int,
        asked: IntArray,
        reports: Reports,
        channel: ChannelDraw | None,
        state: PlannerState,
    ) -> Plan:
        """Return the inner planner's plan."""
        return self.planner.plan(round_index, asked, reports, channel, state)

    def after(
        self, round_index: int, reports: Reports, plan: Plan, outcome: Outcome, state: PlannerState
    ) -> PlannerState:
        """Return the inner planner's state; entries that it does not know are kept as they are."""
        return {**state, **self.planner.after(round_index, reports, plan, outcome, state)}

    def with_devices(
        self, *, present: IntArray, num_samples: IntArray, told: CellReports | None = None
    ) -> Self:
        """Return the same around the inner planner for these devices."""
        inner = self.planner.with_devices(present=present, num_samples=num_samples, told=told)
        return replace(self, planner=inner)

    @property
    def max_models(self) -> int:
        """The inner planner's own."""
        return self.planner.max_models

    @property
    def num_blocks(self) -> int | None:
        """The inner planner's own."""
        return self.planner.num_blocks

    def describe(self) -> Mapping[str, Any]:
        """Return what the inner planner says."""
        return self.planner.describe()
