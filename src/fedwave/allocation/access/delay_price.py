"""What the delay of the uploads costs, as a function of the delay itself; see uploads/delay_cost.py."""

from __future__ import annotations

from dataclasses import dataclass

from fedwave.allocation.problem import AllocationProblem
from fedwave.allocation.uploads.delay_cost import DelayCost, Hurry
from fedwave.allocation.uploads.snr_range import upload_deadline_s


@dataclass(frozen=True, kw_only=True, eq=False)
class DelayPrice:
    """D(delta), convex and increasing, and the deadline."""

    weight: float
    hurry: Hurry | None
    deadline_s: float  # infinite without one

    @classmethod
    def of(cls, problem: AllocationProblem) -> DelayPrice:
        """Return the delay's price of a problem."""
        return cls(
            weight=problem.delay_weight,
            hurry=DelayCost.of(problem).hurry,
            deadline_s=upload_deadline_s(problem),
        )

    def cost(self, delay_s: float) -> float:
        """Return D(delta)."""
        if self.hurry is None or delay_s <= self.hurry.slack_s:
            return self.weight * delay_s
        return self.weight * self.hurry.slack_s + self.hurry.cost(delay_s)

    def slope(self, delay_s: float) -> float:
        """Return a slope of D at this delay; never less than eta_2."""
        if self.hurry is None or delay_s <= self.hurry.slack_s:
            return self.weight
        return max(self.hurry.curve.hurry(self.hurry.finish_s(delay_s)), self.weight)

    def bend(self, delay_s: float) -> float:
        """Return D'', as if nobody were at its least frequency: only for Newton's method."""
        if self.hurry is None or delay_s <= self.hurry.slack_s:
            return 0.0
        return 3.0 * self.slope(delay_s) / self.hurry.finish_s(delay_s)

    def latest_s(self, value: float) -> float:
        """Return a delay beyond which it costs more than ``value``, or the deadline if that comes first."""
        if self.weight > 0.0:
            return min(self.deadline_s, max(value, 0.0) / self.weight)
        return self.deadline_s
