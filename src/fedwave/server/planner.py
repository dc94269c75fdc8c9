"""What a planner is: reports and channel in, plan and state out. Usable by any server, simulated or real."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from numpy.typing import NDArray

from fedwave.server.plan import Plan
from fedwave.server.reports import Reports
from fedwave.units import IntArray
from fedwave.wireless.channel_draw import ChannelDraw

# What a planner carries from round to round: arrays by name, so that any checkpoint can hold them.
PlannerState = Mapping[str, NDArray[Any]]


class Planner(Protocol):
    """Decides, round by round, who computes and who uploads how. It remembers nothing: the state does."""

    def initial_state(self) -> PlannerState:
        """Return the state before the first round."""
        ...

    def ask(self, round_index: int, state: PlannerState) -> IntArray:
        """Return who computes in this round, as sorted device indices."""
        ...

    def plan(
        self, round_index: int, reports: Reports, channel: ChannelDraw | None, state: PlannerState
    ) -> tuple[Plan, PlannerState]:
        """Return who uploads and how, given what the devices report, and the state for the next round."""
        ...

    @property
    def max_models(self) -> int:
        """How many local models are worth keeping until the plan is made: those that contribute most."""
        ...
