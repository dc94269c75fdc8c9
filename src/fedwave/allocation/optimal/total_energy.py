"""The certified optimum where a device's computing and upload share one energy limit.

Given the time T by which all have computed, each device takes the least energy at max(w / T, floor), see
compute_curve.py; that is best for the objective and leaves most for the upload, E_max - E_cpu(T). So (P) is
to maximise F(T) = V(T) - C(T): V, the best uploads within what computing leaves of energy and of the round,
is a problem without computing, solved and certified as ever; C, the cost of computing, is convex. Over a
range of times [A, B] the energy left is largest at B and the time left at A, so V is at most the optimum of
the problem with both, and C at least C at the time of the range that is nearest to its best one. Ranges are
halved, the one with the largest bound first, until no bound exceeds the best F found by more than the gap.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from fedwave.allocation.computing.cpu_frequency import (
    compute_cost,
    frequencies_by,
    solve_cpu_frequencies,
    unhurried_finish_s,
)
from fedwave.allocation.problem import AllocationProblem
from fedwave.allocation.solution import Allocation, Status, build_allocation
from fedwave.allocation.tolerance import RELAXED, exceeds, missed_by
from fedwave.errors import ProblemError
from fedwave.units import FloatArray
from fedwave.wireless.link import compute_energy_j

Solve = Callable[[AllocationProblem], Allocation]  # the optimum of a problem without such limits

_ROUNDING = 1e-13  # relative to the sums added up: what double precision may lose in a bound
_MAX_RANGES = 2_000
_MAX_DOUBLINGS = 200  # of a time; from a nanosecond to any number of years


def allocate_within_total_energy(
    problem: AllocationProblem, solve: Solve, *, relative_gap: float, max_matchings: int
) -> Allocation:
    """Return the optimum of (P) with ``max_total_energy_j``, proven within the gap or with the gap it has."""
    plain = replace(problem, max_total_energy_j=None)
    if solve_cpu_frequencies(plain).reason:
        return solve(plain)  # computing alone is impossible, whatever it takes
    if problem.fastest_compute_s == 0.0:
        return solve(replace(plain, max_energy_j=_left_j(problem, 0.0)))
    search = _Search(problem, solve)
    latest = search.latest_s()
    first = search.first_s(latest)
    if first is None:
        return _cannot_compute(problem, solve(plain), latest)
    search.run(first, latest, relative_gap=relative_gap, max_matchings=max_matchings)
    return search.allocation(relative_gap)


@dataclass
class _Search:
    problem: AllocationProblem
    solve: Solve
    best: float = -math.inf
    found: Allocation | None = None
    best_s: float = 0.0
    num_matchings: int = 0
    upper_bound: float = math.inf
    _heap: list[tuple[float, float, float]] = field(default_factory=list)

    def latest_s(self) -> float:
        """Return the latest time by which computing may have to end; no later one can be better."""
        problem = self.problem
        latest = max(problem.compute_deadline_s, problem.fastest_compute_s)
        at_ease = frequencies_by(problem, math.inf)  # 0 for whoever has no floor
        busy = problem.workload_cycles > 0
        if (at_ease[busy] > 0).all():
            settled = float((problem.workload_cycles[busy] / at_ease[busy]).max())
            latest = min(latest, max(settled, problem.fastest_compute_s))
        if latest == math.inf and problem.delay_weight > 0.0:
            # At some time all can compute. A later one whose delay costs more than that and all contributions
            # is worse than nobody uploading then.
            latest = unhurried_finish_s(problem)
            for _ in range(_MAX_DOUBLINGS):
                if not self.spends_too_much(latest):
                    break
                latest *= 2.0
            worth = float(np.maximum(problem.contribution, 0.0).sum())
            latest = max(latest, (worth + self.cost(latest)) / problem.delay_weight)
        if latest == math.inf:
            raise ProblemError(
                "max_total_energy_j needs a delay_weight > 0, a deadline or frequencies that computing does "
                "not go below, got none. Without them the slowest computing leaves most for the upload."
            )
        return latest

    def first_s(self, latest_s: float) -> float | None:
        """Return the earliest time at which computing alone keeps all limits; None if there is none."""
        if self.spends_too_much(latest_s):
            return None
        low, high = self.problem.fastest_compute_s, latest_s
        if not self.spends_too_much(low):
            return low
        for _ in range(200):
            middle = 0.5 * (low + high)
            if not low < middle < high:
                break
            low, high = (middle, high) if self.spends_too_much(middle) else (low, middle)
        return high

    def spends_too_much(self, finish_s: float) -> bool:
        """Return whether computing by this time takes more than somebody has."""
        limit = np.asarray(self.problem.max_total_energy_j)
        return bool((_compute_energy_j(self.problem, finish_s) > limit * RELAXED).any())

    def cost(self, finish_s: float) -> float:
        """Return C: what computing by this time costs."""
        return compute_cost(self.problem, frequencies_by(self.problem, finish_s))

    def uploads(self, first_s: float, last_s: float) -> Allocation:
        """Return the best uploads with the energy left at the last time, and the time left at the first."""
        problem = self.problem
        deadline: FloatArray | float | None = problem.max_delay_s
        left_j = _left_j(problem, last_s)
        if problem.max_round_delay_s is not None:
            left_s = problem.max_round_delay_s - problem.fixed_delay_s - first_s
            if left_s <= 0.0:
                left_s, left_j = 1.0, np.zeros(problem.num_devices)  # nobody has time
            deadline = left_s if deadline is None else np.minimum(deadline, left_s)
        found = self.solve(
            replace(
                problem,
                workload_cycles=np.zeros(problem.num_devices),
                max_total_energy_j=None,
                max_energy_j=left_j,
                max_delay_s=deadline,
                max_round_delay_s=None,
                max_compute_delay_s=None,
                fixed_delay_s=0.0,
            )
        )
        self.num_matchings += found.iterations + 1
        return found

    def visit(self, finish_s: float) -> None:
        """Keep the best plan at this time, if it beats the best so far."""
        found = self.uploads(finish_s, finish_s)
        value = found.objective - self.cost(finish_s)
        if value > self.best:
            self.best, self.found, self.best_s = value, found, finish_s

    def run(self, first_s: float, last_s: float, *, relative_gap: float, max_matchings: int) -> None:
        """Halve ranges of times until the bound is near enough, or the matchings are spent."""
        ease = min(max(unhurried_finish_s(self.problem), first_s), last_s)
        for time in sorted({first_s, ease, last_s}):
            self.visit(time)
        ranges = [(low, high) for low, high in ((first_s, ease), (ease, last_s)) if low < high]
        for low, high in ranges or [(first_s, first_s)]:
            self._open(low, high, ease, math.inf)
        closed = -math.inf
        for _ in range(_MAX_RANGES):
            bound, low, high = -self._heap[0][0], *self._heap[0][1:]
            if bound <= self.best + self.granted(relative_gap) or self.num_matchings > max_matchings:
                break
            heapq.heappop(self._heap)
            middle = math.sqrt(low) * math.sqrt(high)
            if not low < middle < high:
                closed = max(closed, bound)
                if not self._heap:
                    break
                continue
            self.visit(middle)
            self._open(low, middle, ease, bound)
            self._open(middle, high, ease, bound)
        self.upper_bound = max(closed, max((-entry[0] for entry in self._heap), default=-math.inf), self.best)

    def granted(self, relative_gap: float) -> float:
        """Return the gap that is good enough: relative to the objective and to what uploads are worth."""
        assert self.found is not None
        return max(relative_gap * min(abs(self.best), abs(self.found.objective)), self.rounding)

    @property
    def rounding(self) -> float:
        """Return what double precision may lose in a bound."""
        worth = float(np.maximum(self.problem.contribution, 0.0).sum())
        return _ROUNDING * (worth + self.cost(self.best_s))

    def _open(self, low: float, high: float, ease: float, parent: float) -> None:
        """Sort in a range with its bound, which is no worse than its parent's."""
        bound = self.uploads(low, high).upper_bound - self.cost(min(max(ease, low), high))
        heapq.heappush(self._heap, (-min(bound, parent), low, high))

    def allocation(self, relative_gap: float) -> Allocation:
        """Return the best plan with what is proven of it."""
        assert self.found is not None
        gap = self.upper_bound - self.best
        status = Status.LIMIT
        if gap <= self.rounding:
            status = Status.OPTIMAL
        elif gap <= self.granted(relative_gap):
            status = Status.GAP_REACHED
        device = self.found.selected
        frequency = frequencies_by(self.problem, self.best_s)
        return build_allocation(
            self.problem,
            method="optimal",
            device=device,
            block=self.found.block_of_device[device],
            power_w=self.found.transmit_power_w[device],
            cpu_frequency_hz=frequency,
            status=status,
            reason=self.found.reason,
            iterations=self.num_matchings,
            upload_upper_bound=self.upper_bound + self.rounding + compute_cost(self.problem, frequency),
        )


def _compute_energy_j(problem: AllocationProblem, finish_s: float) -> FloatArray:
    frequency = frequencies_by(problem, finish_s) if finish_s > 0.0 else np.zeros(problem.num_devices)
    return compute_energy_j(
        frequency,
        workload_cycles=problem.workload_cycles,
        capacitance=problem.capacitance,
        static_power_w=problem.static_power_w,
        joules_per_cycle=problem.joules_per_cycle,
    )


def _left_j(problem: AllocationProblem, finish_s: float) -> FloatArray:
    """Return what computing by this time leaves each device for its upload, within both of its limits."""
    left = np.maximum(np.asarray(problem.max_total_energy_j) - _compute_energy_j(problem, finish_s), 0.0)
    return left if problem.max_energy_j is None else np.minimum(left, problem.max_energy_j)


def _cannot_compute(problem: AllocationProblem, plain: Allocation, latest_s: float) -> Allocation:
    """Return that somebody's computing alone takes more than it has, even at its most economical."""
    energy, limit = _compute_energy_j(problem, latest_s), np.asarray(problem.max_total_energy_j)
    device = int(np.argmax(exceeds(energy, limit * (RELAXED / (1.0 + 1e-9)))))
    share = energy[device] / limit[device] - 1.0 if limit[device] > 0 else math.inf
    reason = (
        f"device {device} cannot compute within {limit[device]:g} J even at its most economical frequency "
        f"(it needs {energy[device]:.6g} J): it {missed_by(share, 'max_total_energy_j')}"
    )
    nobody = np.zeros(0, dtype=np.int64)
    return build_allocation(
        problem,
        method="optimal",
        device=nobody,
        block=nobody,
        power_w=np.zeros(0),
        cpu_frequency_hz=plain.cpu_frequency_hz,
        status=Status.INFEASIBLE,
        reason=reason,
    )
