"""SP2 to a certified optimum: branch and bound over the common SNR, that is, over the upload delay.

Let V(x) be the value of the best matching at SNR x, and e(x) = x / ln(1 + x). We maximise F(x) = V(x) -
D(s / ln(1 + x)), D being the cost of the delay. On a node x in (low, high] let G(e) be the value of the best
matching among the pairs that can reach ``smallest_cap``, a set that holds every pair feasible anywhere in the
node. So V(x) <= G(e(x)). G is a maximum of straight lines U - A e, hence convex, and lies below the chord
through its two ends. Chord minus delay cost is concave in e and has one maximum (Lemma 6 with the chord's
slope for b1): the node's upper bound. Each matching met on the way, at its own best SNR, is a lower bound.
Splits fall on the caps of devices that the relaxed matching overstrains, so after finitely many steps each
node is either out-bid or solved exactly. A node that no float divides is closed with the bound at its point.

Where devices may send faster than the common SNR, a pair's worth is concave in e, not straight. Then each
node has a table of tangents, which bound all worths from above, at some SNR of its own, and all of the above
holds for the tangents. A node whose bound owes more to its tangents than to its chord gets others: at the
incumbent's SNR, if that lies inside. There the tangents' best matching is the incumbent itself once the node
is small, and the bound meets it exactly: value and delay cost have equal slopes at the incumbent's best SNR,
so chord minus delay cost is largest there.
"""

from __future__ import annotations

import heapq
import itertools
import math
from dataclasses import dataclass, replace

import numpy as np

from fedwave.allocation.problem import AllocationProblem
from fedwave.allocation.solution import Status
from fedwave.allocation.uploads.assignment import Matching, best_matching
from fedwave.allocation.uploads.delay_cost import DelayCost
from fedwave.allocation.uploads.pairs import PairTable
from fedwave.allocation.uploads.power import energy_factor
from fedwave.allocation.uploads.snr_range import snr_floor
from fedwave.allocation.uploads.upload_plan import UploadPlan, value_at_best_snr

ROUNDING = 1e-13  # relative to the sums added up: what double precision may lose in a bound
_EXTRA_MATCHINGS = 16  # spent, with half as many as before, on closing a small gap completely
_WORTHWHILE = 0.15  # a node's lower end moves only by more than this share of the way to its best point
_SHRINK_STEPS = 6  # of Newton's method; a node need not be cut to the last bit
_FEW_NATS = 1e-3  # up to here e^v - 1 has lost digits that a cut must not be wrong by
_NUM_PROBES = 3  # SNRs tried for a first incumbent where pairs may send faster
_STEPS_PER_MATCHING = 2  # granted at most; a step mostly takes one matching, some take none


@dataclass(frozen=True, kw_only=True, eq=False)
class Lines:
    """A table of straight lines that bound every pair's worth, and the SNR at which they touch it."""

    table: PairTable
    snr: float


@dataclass(eq=False, slots=True)  # not frozen: thousands are made
class Node:
    """A range of SNRs and what bounds the value there: the chord between two matchings."""

    low: float
    high: float
    smallest_cap: float
    lines: Lines
    at_low: Matching
    at_high: Matching
    upper_bound: float
    best_snr: float  # where the bound is attained
    is_proven: bool = False  # that the bound holds for devices outside the table, too
    is_point: bool = False  # cannot be divided, and has the bound of its point: closed, whatever that is

    @property
    def is_divisible(self) -> bool:
        """Return whether some float lies between the ends."""
        return math.nextafter(self.low, math.inf) < self.high


class BranchAndBound:
    """The search itself; ``run`` returns the plan. One instance solves one table once."""

    def __init__(self, problem: AllocationProblem, table: PairTable) -> None:
        self._table = table
        self._delay = DelayCost.of(problem)
        self._floor = snr_floor(problem)
        self._has_kinks = problem.has_own_deadlines
        self._matching: Matching | None = None  # incumbent
        self._snr = 0.0
        self._value = 0.0  # nobody uploads: worth 0
        self._num_matchings = 0
        self._num_steps = 0
        self._trace: list[float] = []
        self._offered: set[bytes] = set()
        self._heap: list[tuple[float, int, Node]] = []  # open nodes, the largest bound first
        self._closed: list[Node] = []  # ruled out
        self._counter = itertools.count()  # breaks ties in the heap

    @property
    def whole_table(self) -> PairTable | None:
        """Return the table if it holds all pairs that may be needed."""
        return self._table

    def run(self, *, relative_gap: float, compute_cost: float, max_matchings: int) -> UploadPlan:
        """Return the best plan found and a proven bound, for a gap relative to both (SP2) and (P)."""
        root = self._root()
        if root is None:
            return self._plan(0.0, Status.OPTIMAL)
        self._sort_in(root)
        rounding = self._rounding(root, compute_cost)
        is_in_time = True
        while is_in_time:
            is_in_time = self._narrow(relative_gap, compute_cost, rounding, max_matchings)
            if not self._reopen(rounding, may_go_on=is_in_time):
                break
        nodes = [*self._closed, *(entry[2] for entry in self._heap)]
        upper_bound = max(node.upper_bound for node in nodes)
        if upper_bound <= self._value + rounding:
            status = Status.OPTIMAL
        elif upper_bound <= self._value + self._granted(relative_gap, compute_cost) + rounding:
            status = Status.GAP_REACHED
        else:
            status = Status.LIMIT
        return self._plan(upper_bound + rounding, status)

    def _rounding(self, root: Node, compute_cost: float) -> float:
        """Return what double precision may lose in a bound."""
        if self._table.faster is not None or self._delay.hurry is not None:
            return ROUNDING * (self._table.largest_contribution + compute_cost)
        return ROUNDING * root.at_low.contribution

    def _narrow(self, relative_gap: float, compute_cost: float, rounding: float, max_matchings: int) -> bool:
        """Branch until the gap is closed; return False if the matchings run out first."""
        extra = 0
        while self._heap:
            upper_bound = -self._heap[0][0]
            if upper_bound <= self._value + rounding:
                break
            if upper_bound <= self._value + self._granted(relative_gap, compute_cost):
                # Good enough; yet most searches end exactly within a few more steps, so we grant those.
                extra = extra or self._num_matchings + self._num_matchings // 2 + _EXTRA_MATCHINGS
                if self._is_spent(min(extra, max_matchings)):
                    break
            elif self._is_spent(max_matchings):
                return False
            self._num_steps += 1
            for child in self._branch(heapq.heappop(self._heap)[2]):
                self._sort_in(child)
        return True

    def _granted(self, relative_gap: float, compute_cost: float) -> float:
        """Return the gap that is good enough, relative to both (SP2) and (P)."""
        return relative_gap * min(abs(self._value), abs(self._value - compute_cost))

    def _is_spent(self, max_matchings: int) -> bool:
        """Return whether so many matchings are solved, or steps taken that a search of so many may take."""
        return self._num_matchings >= max_matchings or self._num_steps >= _STEPS_PER_MATCHING * max_matchings

    def _sort_in(self, node: Node) -> None:
        """Keep a node that may hold something better open, and close the others."""
        if node.upper_bound > self._value and not node.is_point:
            heapq.heappush(self._heap, (-node.upper_bound, next(self._counter), node))
        else:
            self._closed.append(node)

    def _reopen(self, rounding: float, *, may_go_on: bool) -> bool:
        """Return whether nodes had to be opened again: never, as the table holds all pairs."""
        del rounding, may_go_on
        return False

    def _lowest_snr(self, largest_contribution: float) -> float:
        """Return the SNR below which no upload is worth its delay, or breaks a limit."""
        low = max(self._floor, math.ulp(0.0))
        if self._delay.delay_weight > 0.0:
            # A delay that costs more than all contributions together is worse than nobody uploading.
            nats = self._delay.delay_weight * self._delay.nat_delay_s / largest_contribution
            low = max(low, math.expm1(nats)) if nats < 600.0 else math.inf
        return low

    def _root(self) -> Node | None:
        """Return the whole range of useful SNRs, or None if nobody can upload with profit."""
        caps = self._table.snr_cap
        highest = float(caps.max(initial=0.0))
        if highest <= 0.0:
            return None
        low = self._lowest_snr(self._table.largest_contribution)
        if self._table.faster is not None:
            # Up to the least favourite all pairs stay at theirs, and waiting longer brings nothing.
            favourite = np.minimum(self._table.faster.favourite, caps)
            low = max(low, float(favourite.min(where=caps > 0, initial=highest)))
        if low > highest:
            return None
        lines = Lines(table=self._table, snr=low)
        if self._table.faster is not None:
            lines = self._touching(self._probe(low, highest))
        at_low = self._match(lines, low, low)
        if at_low.row.size == 0:
            return None
        return self._node(low, highest, low, lines, at_low, self._match(lines, highest, low))

    def _probe(self, low: float, high: float) -> float:
        """Return a good SNR: some are tried, then blocks and SNR are improved in turns, as IVES does."""
        first, last = math.log(low), math.log(high)
        for step in range(_NUM_PROBES):
            snr = math.exp(first + (last - first) * (step + 0.5) / _NUM_PROBES)
            self._match(self._touching(snr), snr, snr)
        before = 0.0
        while self._value > before:
            before, snr = self._value, self._snr
            self._match(self._touching(snr), snr, snr)
        return self._snr if self._matching is not None else math.exp(0.5 * (first + last))

    def _touching(self, snr: float) -> Lines:
        return Lines(table=self._table.tangent(snr), snr=snr)

    def _table_of(self, lines: Lines) -> PairTable:
        """Return the table of these lines."""
        return lines.table

    def _match(self, lines: Lines, snr: float, smallest_cap: float) -> Matching:
        self._num_matchings += 1
        table = self._table_of(lines)
        found = best_matching(table, energy_factor=energy_factor(snr), smallest_cap=smallest_cap)
        self._offer(found)
        return found

    def _offer(self, matching: Matching) -> None:
        """Keep the matching, at its own best SNR, if it beats the incumbent: Theorem 4."""
        key = matching.row.tobytes() + matching.column.tobytes()
        if matching.row.size == 0 or key in self._offered:
            return
        self._offered.add(key)
        snr, value = value_at_best_snr(self._table, matching, self._delay, snr_floor=self._floor)
        if value > self._value:
            self._matching, self._snr, self._value = matching, snr, value
            self._trace.append(value)

    def _node(
        self, low: float, high: float, cap: float, lines: Lines, at_low: Matching, at_high: Matching
    ) -> Node:
        """Return the node with its upper bound: the best point of the chord over (low, high]."""
        bound, snr = self._chord_bound(low, high, at_low, at_high)
        return Node(low, high, cap, lines, at_low, at_high, bound, snr)

    def _chord_bound(
        self,
        low: float,
        high: float,
        at_low: Matching,
        at_high: Matching,
        *,
        raised: tuple[float, float] = (0.0, 0.0),
    ) -> tuple[float, float]:
        """Return the largest chord minus delay cost on (low, high], and where; its ends may be raised."""
        value_low, slope = _chord(at_low, at_high, raised)
        snr = self._delay.best_snr(slope, smallest=low, largest=high)
        rise = energy_factor(snr) - at_low.energy_factor
        return value_low - slope * rise - self._delay.at(snr), snr

    def _shrunk(self, node: Node) -> Node:
        """Cut a node to where its chord, minus the delay's cost, beats the incumbent; return it.

        That difference is concave, so the part is an interval. With v = ln(1 + x) and the chord a - b e it
        is where (a - value) v - b (e^v - 1) - s eta_2 > 0. Newton's method nears its ends from outside, so
        what is left out is never better than the incumbent. Whoever cannot reach the new lower end is
        dropped.
        """
        if self._delay.hurry is not None:
            return node
        value_low, slope = _chord(node.at_low, node.at_high)
        height = value_low + slope * node.at_low.energy_factor - self._value
        price = self._delay.delay_weight * self._delay.nat_delay_s
        low, high = node.low, node.high
        new_low, new_high = low, high
        if low < node.best_snr:
            new_low = math.expm1(_approach(height, slope, price, math.log1p(low)))
            if not low + _WORTHWHILE * (node.best_snr - low) < new_low < node.best_snr:
                new_low = low
        if node.best_snr < high:
            new_high = math.expm1(_approach(height, slope, price, math.log1p(high)))
            if not node.best_snr < new_high < high:
                new_high = high
        if new_low > low:
            node.smallest_cap = max(node.smallest_cap, math.nextafter(new_low, math.inf))
        node.low, node.high = new_low, new_high
        return node

    def _branch(self, node: Node) -> list[Node]:
        """Return nodes that cover this one, with better bounds."""
        if not node.is_divisible:
            return [self._at_point(node)]
        node = self._shrunk(node)
        fresh = self._refreshed(node)
        if fresh is not node:
            return [fresh]
        incumbent = self._snr
        if self._has_kinks and node.low <= incumbent < node.high and self._is_at_kink():
            if node.low < incumbent:
                return self._parted_at_kink(node)
            incumbent = math.nextafter(incumbent, math.inf)
        at_best = self._at_best(node)
        if self._table.faster is None:
            return self._split(node, at_best)
        new = node.best_snr
        if node.low <= incumbent <= node.high and incumbent != node.lines.snr:
            new = incumbent
        if new != node.lines.snr:
            lost = self._lost_to_lines(node, at_best)
            if lost > 0.5 * (node.upper_bound - self._value):
                return self._touch_anew(node, new)
        return self._split(node, at_best)

    def _at_point(self, node: Node) -> Node:
        """Return a node that cannot be divided with the value of its point for a bound, never to be opened.

        Tangents that touch the worths at the upper end are the worths there, and both ends are matched among
        the pairs of this node alone.
        """
        lines = node.lines if self._table.faster is None else self._touching(node.high)
        at_low, at_high = (self._match(lines, snr, node.smallest_cap) for snr in (node.low, node.high))
        found = self._node(node.low, node.high, node.smallest_cap, lines, at_low, at_high)
        return replace(found, upper_bound=min(found.upper_bound, node.upper_bound), is_point=True)

    def _lost_to_lines(self, node: Node, at_best: Matching) -> float:
        """Return by how much the lines overrate a matching at the node's best point."""
        can = at_best.caps >= node.best_snr  # the others are overstrained, which is for the split to mend
        row, column = at_best.row[can], at_best.column[can]
        lines = self._table_of(node.lines)
        rated = lines.contributions_at(row, column).sum()
        rated -= energy_factor(node.best_snr) * lines.unit_cost[row, column].sum()
        return float(rated) - self._table.common_snr(row, column).value(node.best_snr)

    def _touch_anew(self, node: Node, new: float) -> list[Node]:
        """Return the node with tangents at another SNR, or its parts, the other with the tangents it has."""
        old = node.lines.snr
        if not node.low <= old <= node.high:
            return [self._matched(node, node.low, node.high, node.smallest_cap, self._touching(new))]
        cut = math.sqrt(old) * math.sqrt(new)
        left, right = node.lines, self._touching(new)
        if new < old:
            left, right = right, left
        cap = max(node.smallest_cap, math.nextafter(cut, math.inf))
        parts = [(node.low, cut, node.smallest_cap), (cut, node.high, cap)]
        return [self._matched(node, *part, lines) for part, lines in zip(parts, (left, right), strict=True)]

    def _is_at_kink(self) -> bool:
        """Return whether some pair of the incumbent begins to follow the common SNR just there."""
        if self._matching is None or self._table.faster is None:
            return False
        row, column = self._matching.row, self._matching.column
        return bool((self._table.faster.favourite[row, column] == self._snr).any())

    def _parted_at_kink(self, node: Node) -> list[Node]:
        """Return the node in two parts, with tangents on either side of the incumbent's SNR.

        A deadline of a device's own makes its worth level up to there and fall at once from there on: no one
        tangent is exact on both sides.
        """
        snr = self._snr
        above = math.nextafter(snr, math.inf)
        left = self._matched(node, node.low, snr, node.smallest_cap, self._touching(snr))
        cap = max(node.smallest_cap, above)
        return [left, self._matched(node, snr, node.high, cap, self._touching(above))]

    def _matched(self, parent: Node, low: float, high: float, cap: float, lines: Lines) -> Node:
        """Return a part of a node, matched at its ends; its bound is no worse than its parent's."""
        at_low, at_high = parent.at_low, parent.at_high
        is_same = lines is parent.lines and cap == parent.smallest_cap
        if not (is_same and low == parent.low):
            at_low = self._match(lines, low, cap)
        if not (is_same and high == parent.high):
            at_high = self._match(lines, high, cap)
        found = self._node(low, high, cap, lines, at_low, at_high)
        return (
            found
            if found.upper_bound <= parent.upper_bound
            else replace(found, upper_bound=parent.upper_bound)
        )

    def _split(self, node: Node, at_best: Matching) -> list[Node]:
        """Return the two halves of a node; the right one drops all pairs that cannot follow."""
        cut, at_cut = self._cut(node, at_best)
        lines = node.lines
        cap = math.nextafter(cut, math.inf)
        if at_cut is None:
            left = self._node(node.low, cut, node.smallest_cap, lines, node.at_low, at_best)
            return [left, self._node(cut, node.high, cap, lines, node.at_low, node.at_high)]
        left = self._node(node.low, cut, node.smallest_cap, lines, node.at_low, at_cut)
        if cut >= node.high:
            return [left]
        return [left, self._node(cut, node.high, cap, lines, at_cut, node.at_high)]

    def _refreshed(self, node: Node) -> Node:
        """Return the node with a matching of its own at the end that decides on its bound, if it has none.

        A matching of more pairs bounds one of fewer, so halves start with those of their parents, and are
        matched anew only when it is their turn. Where the bound is attained at one end, the other has no
        say.
        """
        cap, at_low, at_high = node.smallest_cap, node.at_low, node.at_high
        if node.best_snr < node.high and at_low.snr_cap < cap:
            at_low = self._match(node.lines, node.low, cap)
        elif node.best_snr > node.low and at_high.snr_cap < cap:
            at_high = self._match(node.lines, node.high, cap)
        else:
            return node
        return self._node(node.low, node.high, cap, node.lines, at_low, at_high)

    def _at_best(self, node: Node) -> Matching:
        """Return the matching at the node's best point."""
        factor = energy_factor(node.best_snr)
        for end in (node.at_high, node.at_low):
            if end.energy_factor == factor and end.snr_cap >= node.smallest_cap:
                return end
        return self._match(node.lines, node.best_snr, node.smallest_cap)

    def _cut(self, node: Node, at_best: Matching) -> tuple[float, Matching | None]:
        """Return where to split, and the matching there if it is known already.

        If the matching at the best point overstrains devices, we split below that point: at the cap of
        the only one, or half-way (geometrically) to the weakest.
        """
        snr = node.best_snr
        weakest = at_best.snr_cap
        if weakest >= snr:
            return snr, at_best
        strongest = float(np.maximum.reduce(at_best.caps[at_best.caps < snr]))
        return max(weakest, min(math.sqrt(weakest) * math.sqrt(snr), strongest)), None

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


def _chord(
    at_low: Matching, at_high: Matching, raised: tuple[float, float] = (0.0, 0.0)
) -> tuple[float, float]:
    """Return the height of the chord at its left end, and how fast it falls with e."""
    value_low, value_high = at_low.best_value + raised[0], at_high.best_value + raised[1]
    width = at_high.energy_factor - at_low.energy_factor
    if width <= 0.0:  # SNRs so close, or so small, that e is the same: then both bound the same value
        return min(value_low, value_high), at_low.unit_cost
    value_low = max(value_low, value_high)  # worth never grows with e
    return value_low, (value_low - value_high) / width


def _approach(height: float, slope: float, price: float, nats: float) -> float:
    """Return a point between v and the nearest root of the concave height v - slope (e^v - 1) - price.

    The function must be negative at v, else v is returned. A tangent to a concave function lies above it, so
    Newton's steps never pass the root.
    """
    for _ in range(_SHRINK_STEPS):
        growth = math.exp(nats)
        snr = growth - 1.0 if nats > _FEW_NATS else math.expm1(nats)
        value = height * nats - slope * snr - price
        rise = height - slope * growth
        if value >= 0.0 or rise == 0.0:
            break
        nats -= value / rise
    return nats
