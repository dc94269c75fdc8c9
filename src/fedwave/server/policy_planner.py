"""Planning on an ideal network: a selection policy decides alone, as in Alg. 1."""

from __future__ import annotations

from dataclasses import dataclass

from fedwave.server.chooser import Chooser
from fedwave.server.plan import Plan
from fedwave.server.planner import PlannerState
from fedwave.server.reports import Reports
from fedwave.units import IntArray
from fedwave.wireless.channel_draw import ChannelDraw


@dataclass(frozen=True, eq=False)
class PolicyPlanner:
    """Lets a selection policy choose; whoever is chosen uploads."""

    chooser: Chooser

    @property
    def max_models(self) -> int:
        """As many as may be asked for: the selected ones, or all candidates of a policy with a short list."""
        policy = self.chooser.policy
        return max(policy.num_selected, getattr(policy, "num_candidates", None) or 0)

    def initial_state(self) -> PlannerState:
        """Return an empty history."""
        return self.chooser.initial_state()

    def ask(self, round_index: int, state: PlannerState) -> IntArray:
        """Return who computes."""
        return self.chooser.ask(round_index, state)

    def plan(
        self, round_index: int, reports: Reports, channel: ChannelDraw | None, state: PlannerState
    ) -> tuple[Plan, PlannerState]:
        """Return the policy's choice."""
        del channel  # an ideal network
        selected = self.chooser.select(round_index, reports, state)
        plan = Plan(selected=selected, waits_for_reports=self.chooser.policy.compares_reports)
        return plan, self.chooser.state_after(round_index, reports, selected, state)
