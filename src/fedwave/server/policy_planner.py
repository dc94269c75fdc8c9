"""Planning on an ideal network: a selection policy decides alone, as in Alg. 1."""

from __future__ import annotations

from dataclasses import dataclass

from fedwave.selection import History
from fedwave.server.chooser import Chooser
from fedwave.server.memory import history_from_state, history_to_state, remember
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
        return history_to_state(History.empty(self.chooser.num_devices))

    def ask(self, round_index: int, state: PlannerState) -> IntArray:
        """Return who computes."""
        return self.chooser.computing(round_index, history_from_state(state, self.chooser.num_devices))

    def plan(
        self, round_index: int, reports: Reports, channel: ChannelDraw | None, state: PlannerState
    ) -> tuple[Plan, PlannerState]:
        """Return the policy's choice."""
        del channel  # an ideal network
        history = history_from_state(state, self.chooser.num_devices)
        selected = self.chooser.select(round_index, reports, history)
        plan = Plan(selected=selected, waits_for_reports=self.chooser.policy.compares_reports)
        return plan, history_to_state(remember(history, round_index, reports, selected))
