"""Planning on an ideal network: a selection policy decides alone, as in Alg. 1."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

from fedwave.server.outcome import Outcome
from fedwave.server.plan import Plan
from fedwave.server.planner import PlannerDefaults, PlannerState
from fedwave.server.policy_runner import PolicyRunner
from fedwave.server.real_devices import CellReports
from fedwave.server.reports import Reports
from fedwave.units import IntArray
from fedwave.wireless.terms import ChannelDraw


@dataclass(frozen=True, eq=False)
class PolicyPlanner(PlannerDefaults):
    """Lets a selection policy choose; whoever is chosen uploads."""

    runner: PolicyRunner

    @property
    def max_models(self) -> int:
        """As many as the policy may ask for."""
        return self.runner.max_models

    def initial_state(self) -> PlannerState:
        """Return an empty history."""
        return self.runner.initial_state()

    def ask(self, round_index: int, state: PlannerState) -> IntArray:
        """Return who computes."""
        return self.runner.ask(round_index, state)

    def plan(
        self,
        round_index: int,
        asked: IntArray,
        reports: Reports,
        channel: ChannelDraw | None,
        state: PlannerState,
    ) -> Plan:
        """Return the policy's choice."""
        del channel  # an ideal network
        selected = self.runner.select(round_index, asked, reports, state)
        return Plan(selected=selected, needs_reports=self.runner.policy.needs_reports)

    def after(
        self, round_index: int, reports: Reports, plan: Plan, outcome: Outcome, state: PlannerState
    ) -> PlannerState:
        """Return the history with this round in it."""
        return self.runner.after(round_index, reports, plan.selected, outcome, state)

    def with_devices(
        self, *, present: IntArray, num_samples: IntArray, told: CellReports | None = None
    ) -> Self:
        """Return the planner that chooses among the devices present; radios play no part."""
        del told
        return replace(self, runner=replace(self.runner, present=present, num_samples=num_samples))
