"""What the delay of the uploads costs: eta_2 a second, and the hurry of the CPUs under a deadline for both.

With T' = max_round_delay_s - fixed_delay_s the CPUs may take T' - delta. As long as that is no less than the
time T* that suits them best, a second of upload costs eta_2. Beyond, each second more is taken from the CPUs:
the round's length stays T', and the cost of computing, (SP1), rises. So

    D(delta) = eta_2 min(delta, T' - T*) + eta_1 [E_cpu(min(T*, T' - delta)) - E_cpu(T*)],

convex and increasing, because E_cpu is convex and falling in T and its slope at T* is -eta_2 or steeper, or
else T* is the fastest time of all and nobody can be hurried.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from fedwave.allocation.computing.compute_curve import ComputeCurve
from fedwave.allocation.computing.cpu_frequency import unhurried_finish_s
from fedwave.allocation.problem import AllocationProblem
from fedwave.allocation.uploads.power import LARGEST_SNR, best_common_snr, delay_factor, steepness

_ROOT_TOLERANCE = 1e-11  # relative; what is maximised there is level, so its value is exact


@dataclass(frozen=True, kw_only=True, eq=False)
class Hurry:
    """The CPUs under a deadline that they share with the uploads."""

    curve: ComputeCurve
    fastest_s: float  # all at full frequency
    free_s: float  # T*, within the deadline
    left_s: float  # T', for computing and upload together

    @property
    def slack_s(self) -> float:
        """Return the longest upload that hurries nobody."""
        return self.left_s - self.free_s

    def finish_s(self, delay_s: float) -> float:
        """Return when the CPUs are done if the uploads take this long."""
        return max(min(self.free_s, self.left_s - delay_s), self.fastest_s)

    def cost(self, delay_s: float) -> float:
        """Return what computing costs more than it would at leisure."""
        return self.curve.energy_cost(self.finish_s(delay_s)) - self.curve.energy_cost(self.free_s)


@dataclass(frozen=True, kw_only=True, eq=False)
class DelayCost:
    """D as a function of the SNR that all uploads share, the delay being s / ln(1 + x)."""

    delay_weight: float
    nat_delay_s: float
    hurry: Hurry | None = None  # None: the CPUs have a time of their own

    @classmethod
    def of(cls, problem: AllocationProblem) -> DelayCost:
        """Return the delay cost of a problem."""
        hurry = None
        if problem.max_round_delay_s is not None:
            left_s = problem.max_round_delay_s - problem.fixed_delay_s
            free_s = unhurried_finish_s(problem)
            hurry = Hurry(
                curve=ComputeCurve.of(problem),
                fastest_s=problem.fastest_compute_s,
                free_s=free_s,
                left_s=left_s,
            )
            if free_s == 0.0:  # nobody computes, so nobody can be hurried
                hurry = None
        return cls(delay_weight=problem.delay_weight, nat_delay_s=problem.nat_delay_s, hurry=hurry)

    def at(self, snr: float) -> float:
        """Return what the delay at this common SNR costs."""
        if self.hurry is None:
            return self.delay_weight * self.nat_delay_s * delay_factor(snr) if self.delay_weight else 0.0
        delay_s = self.nat_delay_s * delay_factor(snr)
        if delay_s <= self.hurry.slack_s:
            return self.delay_weight * delay_s
        return self.delay_weight * self.hurry.slack_s + self.hurry.cost(delay_s)

    def slope(self, nats: float) -> float:
        """Return s D'(s / v): what a little less SNR costs, in units of Lemma 6, at v = ln(1 + x).

        Where the fastest time is later than would suit best, there is no hurry, and yet rounding may carry a
        delay past the slack. So the slope is never taken for less than eta_2.
        """
        if self.hurry is None or self.nat_delay_s / nats <= self.hurry.slack_s:
            return self.nat_delay_s * self.delay_weight
        hurry = self.hurry.curve.hurry(self.hurry.finish_s(self.nat_delay_s / nats))
        return self.nat_delay_s * max(hurry, self.delay_weight)

    def best_snr(self, unit_cost: float, *, smallest: float, largest: float) -> float:
        """Return the SNR in the range with the least unit_cost e(x) + D: Theorem 4, e(x) = x / ln(1 + x).

        Both terms are convex in e, so where their slopes meet is the only minimum: unit_cost ((1 + x)
        ln(1 + x) - x) = s D'. Where D' is constant that is Lemma 6.
        """
        snr = best_common_snr(
            unit_cost,
            delay_weight=self.delay_weight,
            nat_delay_s=self.nat_delay_s,
            smallest=smallest,
            largest=largest,
        )
        if self.hurry is None or snr >= largest or self.nat_delay_s * delay_factor(snr) <= self.hurry.slack_s:
            return snr
        # Slower than hurries nobody: the answer lies between there and where the hurry begins.
        fastest = largest
        if self.hurry.slack_s > 0.0 and self.nat_delay_s / self.hurry.slack_s < math.log(LARGEST_SNR):
            fastest = min(largest, math.expm1(self.nat_delay_s / self.hurry.slack_s))
        return falling_root(lambda v: self.slope(v) - unit_cost * steepness(v), snr, fastest)


def falling_root(falling: Callable[[float], float], low: float, high: float) -> float:
    """Return the SNR in the range where a function of ln(1 + x) that falls through 0 does so."""
    first, last = math.log1p(low), math.log1p(high)
    if last <= first or falling(first) <= 0.0:
        return low
    if falling(last) >= 0.0:
        return high
    from scipy.optimize import (
        brentq,
    )  # takes long to load, and only a round's deadline or packet errors need it

    root = brentq(falling, first, last, xtol=1e-300, rtol=_ROOT_TOLERANCE)
    return min(max(math.expm1(root), low), high)
