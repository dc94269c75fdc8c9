"""SP2 to a certified optimum: branch and bound over the common SNR, that is, over the upload delay.

Let V(x) be the value of the best matching at SNR x, and e(x) = x / ln(1 + x). We maximise F(x) = V(x) -
eta_2 s / ln(1 + x). On a node x in (low, high] let G(e) be the value of the best matching among the pairs
that can reach ``smallest_cap``, a set that holds every pair feasible anywhere in the node. So V(x) <=
G(e(x)). G is a maximum of straight lines U - A e, hence convex, and lies below the chord through its two
ends. Chord minus delay cost has a closed-form maximum (Lemma 6 with the chord's slope for b1): the node's
upper bound. Each matching met on the way, with its closed-form SNR, is a lower bound. Splits fall on the
caps of devices that the relaxed matching overstrains, so after finitely many steps each node is either
out-bid or solved exactly.
"""

from __future__ import annotations

import heapq
import itertools
import math
from dataclasses import dataclass

import numpy as np

from fedwave.allocation.assignment import Matching, best_matching
from fedwave.allocation.cpu_frequency import compute_cost, solve_cpu_frequencies
from fedwave.allocation.limits import snr_floor
from fedwave.allocation.optimal.candidates import candidate_pairs
from fedwave.allocation.pairs import PairTable
from fedwave.allocation.power import best_common_snr, delay_factor, energy_factor
from fedwave.allocation.problem import AllocationProblem
from fedwave.allocation.solution import Allocation, Status
from fedwave.allocation.upload_plan import UploadPlan, finish, value_at_best_snr
from fedwave.errors import ProblemError
from fedwave.units import BoolArray

_ROUNDING = 1e-13  # relative to the sums added up: what double precision may lose in a bound
_EXTRA_MATCHINGS = 16  # spent, with half as many as before, on closing a small gap completely


@dataclass(frozen=True, kw_only=True, eq=False)
class _Node:
    low: float
    high: float
    smallest_cap: float
    at_low: Matching
    at_high: Matching
    upper_bound: float
    best_snr: float  # where the bound is attained


class BranchAndBound:
    """The search itself; ``run`` returns the plan. One instance solves one table once."""

    def __init__(self, problem: AllocationProblem, table: PairTable) -> None:
        self._table = table
        self._delay_weight = problem.delay_weight
        self._nat_time_s = problem.nat_time_s
        self._floor = snr_floor(problem)
        self._matching: Matching | None = None  # incumbent
        self._snr = 0.0
        self._value = 0.0  # nobody uploads: worth 0
        self._num_matchings = 0
        self._trace: list[float] = []

    def run(self, *, relative_gap: float, compute_cost: float, max_matchings: int) -> UploadPlan:
        """Return the best plan found and a proven bound, for a gap relative to both (SP2) and (P)."""
        root = self._root()
        if root is None:
            return self._plan(0.0, Status.OPTIMAL)
        counter = itertools.count()  # breaks ties in the heap
        heap = [(-root.upper_bound, next(counter), root)]
        rounding = _ROUNDING * root.at_low.contribution
        upper_bound = root.upper_bound
        out_bid = -math.inf  # the largest bound among the nodes ruled out
        extra = 0
        while heap:
            upper_bound = -heap[0][0]
            scale = min(abs(self._value), abs(self._value - compute_cost))
            if upper_bound <= self._value + rounding:
                break
            if upper_bound <= self._value + relative_gap * scale:
                # Good enough; yet most searches end exactly within a few more steps, so we grant those.
                extra = extra or self._num_matchings + self._num_matchings // 2 + _EXTRA_MATCHINGS
                if self._num_matchings >= min(extra, max_matchings):
                    break
            elif self._num_matchings >= max_matchings:
                return self._plan(upper_bound + rounding, Status.LIMIT)
            node = heapq.heappop(heap)[2]
            for child in self._split(node):
                if child.upper_bound > self._value:
                    heapq.heappush(heap, (-child.upper_bound, next(counter), child))
                else:
                    out_bid = max(out_bid, child.upper_bound)
        else:
            upper_bound = out_bid
        is_exact = upper_bound <= self._value + rounding
        return self._plan(upper_bound + rounding, Status.OPTIMAL if is_exact else Status.GAP_REACHED)

    def _root(self) -> _Node | None:
        """Return the whole range of useful SNRs, or None if nobody can upload with profit."""
        caps = self._table.snr_cap
        highest = float(caps.max(initial=0.0))
        if highest <= 0.0:
            return None
        low = max(self._floor, float(np.nextafter(0.0, 1.0)))
        if self._delay_weight > 0.0:
            # A delay that costs more than all contributions together is worse than nobody uploading.
            nats = self._delay_weight * self._nat_time_s / self._table.largest_contribution
            low = max(low, math.expm1(nats)) if nats < 600.0 else math.inf
        if low > highest:
            return None
        at_low = self._match(low, low)
        if at_low.row.size == 0:
            return None
        return self._node(low, highest, low, at_low, self._match(highest, low))

    def _match(self, snr: float, smallest_cap: float) -> Matching:
        self._num_matchings += 1
        found = best_matching(self._table, energy_factor=energy_factor(snr), smallest_cap=smallest_cap)
        self._offer(found)
        return found

    def _offer(self, matching: Matching) -> None:
        """Keep the matching, at its own best SNR, if it beats the incumbent: Theorem 4."""
        if matching.row.size == 0:
            return
        snr, value = value_at_best_snr(
            matching, delay_weight=self._delay_weight, nat_time_s=self._nat_time_s, snr_floor=self._floor
        )
        if value > self._value:
            self._matching, self._snr, self._value = matching, snr, value
            self._trace.append(value)

    def _delay_cost(self, snr: float) -> float:
        return self._delay_weight * self._nat_time_s * delay_factor(snr) if self._delay_weight else 0.0

    def _node(self, low: float, high: float, cap: float, at_low: Matching, at_high: Matching) -> _Node:
        """Return the node with its upper bound: the best point of the chord over (low, high]."""
        factor_low, factor_high = energy_factor(low), energy_factor(high)
        value_low, value_high = at_low.value(factor_low), at_high.value(factor_high)
        width = factor_high - factor_low
        slope = max(value_low - value_high, 0.0) / width if width > 0.0 else at_low.unit_cost
        snr = best_common_snr(
            slope,
            delay_weight=self._delay_weight,
            nat_time_s=self._nat_time_s,
            smallest=low,
            largest=high,
        )
        bound = value_low - slope * (energy_factor(snr) - factor_low) - self._delay_cost(snr)
        return _Node(
            low=low,
            high=high,
            smallest_cap=cap,
            at_low=at_low,
            at_high=at_high,
            upper_bound=bound,
            best_snr=snr,
        )

    def _split(self, node: _Node) -> list[_Node]:
        """Return the two halves of a node; the right one drops all pairs that cannot follow.

        A matching of more pairs bounds one of fewer, so the right half is matched anew only while the bound
        from its parent's matchings does not already rule it out.
        """
        cut, at_cut = self._cut(node)
        if at_cut is None:
            at_cut = self._match(cut, node.smallest_cap)
        left = self._node(node.low, cut, node.smallest_cap, node.at_low, at_cut)
        if cut >= node.high:
            return [left]
        cap = float(np.nextafter(cut, math.inf))
        right = self._node(cut, node.high, cap, at_cut, node.at_high)
        if right.upper_bound > self._value and right.at_low.snr_cap < cap:
            right = self._node(cut, node.high, cap, self._match(cut, cap), right.at_high)
        if right.upper_bound > self._value and right.at_high.snr_cap < cap:
            right = self._node(cut, node.high, cap, right.at_low, self._match(node.high, cap))
        return [left, right]

    def _cut(self, node: _Node) -> tuple[float, Matching | None]:
        """Return where to split, and the matching there if it is known already.

        If the matching at the best point overstrains devices, we split below that point: at the cap of
        the only one, or half-way (geometrically) to the weakest.
        """
        snr = node.best_snr
        if snr >= node.high:
            at_best = node.at_high
        elif snr <= node.low:
            at_best = node.at_low
        else:
            at_best = self._match(snr, node.smallest_cap)
        overstrained = at_best.caps[at_best.caps < snr]
        if overstrained.size == 0:
            return snr, at_best
        weakest, strongest = float(overstrained.min()), float(overstrained.max())
        return max(node.low, min(math.sqrt(weakest) * math.sqrt(snr), strongest)), None

    def _plan(self, upper_bound: float, status: Status) -> UploadPlan:
        return UploadPlan(
            table=self._table,
            matching=self._matching,
            snr=self._snr,
            value=self._value,
            upper_bound=max(upper_bound, self._value),
            status=status,
            num_matchings=self._num_matchings,
            trace=tuple(self._trace),
        )


def allocate_optimal(
    problem: AllocationProblem,
    *,
    relative_gap: float = 1e-6,
    max_matchings: int = 10_000,
    may_upload: BoolArray | None = None,
) -> Allocation:
    """Return an allocation that is proven optimal for (P) within ``relative_gap``.

    ``may_upload`` restricts who may get a block. The search stops after ``max_matchings`` with status
    LIMIT and the gap proven so far.
    """
    if not 0.0 <= relative_gap < 1.0:
        raise ProblemError(f"relative_gap must be >= 0 and < 1, got {relative_gap:g}. The default is 1e-6.")
    cpu = solve_cpu_frequencies(problem)
    table = candidate_pairs(problem, may_upload=may_upload)
    search = BranchAndBound(problem, table)
    plan = search.run(
        relative_gap=relative_gap,
        compute_cost=compute_cost(problem, cpu.cpu_frequency_hz),
        max_matchings=max_matchings,
    )
    return finish(problem, plan, cpu, method="optimal", may_upload=may_upload)
