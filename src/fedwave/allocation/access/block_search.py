"""Branch and bound over the delay for whole blocks: how many each device gets is a knapsack at every delay.

The worth of an option is concave in the delay, so it lies below its tangents. Whatever the numbers of blocks,
the sum of their tangents is a straight line, and the best sum, a maximum of lines, is convex: over a range of
delays it lies below the chord between the knapsacks at both ends. Chord minus D bounds the range. An option
that the knapsacks' prices keep below the incumbent at both ends is in nothing better within the range, and
is left out of its parts. See docs/allocation-proofs.md.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from fedwave.allocation.access.block_options import BlockOptions
from fedwave.allocation.access.delay_price import DelayPrice
from fedwave.allocation.access.groups import Groups
from fedwave.allocation.access.knapsack import Knapsack, best_counts
from fedwave.allocation.access.proof import Gap, Proof
from fedwave.units import FloatArray, IntArray

_GRID = 4  # delays looked at first
_ROOT_STEPS = 80


@dataclass(frozen=True, kw_only=True, eq=False)
class BlockPlan:
    """How many blocks each device of the options gets, by when, and what is proven."""

    counts: IntArray
    delay_s: float
    proof: Proof


@dataclass(order=True)
class _Node:
    priority: float  # minus its bound
    first_s: float
    last_s: float
    wished_s: float = field(compare=False)  # where to split
    options: BlockOptions = field(compare=False)  # that may be in something better than the incumbent
    row: IntArray = field(compare=False)  # of the devices among all
    ends: bool = field(compare=False)  # its last delay is part of it, and not of its neighbour


class BlockSearch:
    """Maximises the uploads' worth minus D over the numbers of blocks and the delay."""

    def __init__(
        self, options: BlockOptions, delay: DelayPrice, *, num_blocks: int, max_uploads: int | None
    ) -> None:
        self.options, self.delay = options, delay
        self.num_blocks, self.max_uploads = num_blocks, max_uploads
        self.value, self.delay_s = 0.0, 0.0
        self.counts = np.zeros(options.device.size, dtype=np.int64)
        self.num_knapsacks = 0
        self._best_delay: dict[bytes, float] = {}

    def run(self, *, relative_gap: float, compute_cost: float, max_knapsacks: int) -> BlockPlan:
        """Return a plan within ``relative_gap`` of the optimum of (P), or the best so far."""
        scale = float(np.maximum(self.options.contribution, 0.0).sum())
        gap = Gap(relative=relative_gap, compute_cost=compute_cost, scale=scale)
        first_s, last_s = float(self.options.first_s.min(initial=math.inf)), self.delay.latest_s(scale)
        heap: list[_Node] = []
        closed = 0.0

        if first_s <= last_s:
            self._look_around(first_s, last_s)
            last_s = max(first_s, min(last_s, self.delay.latest_s(self._most() - self.value)))
            middle = min(max(self.delay_s, first_s), last_s)
            everybody = np.arange(self.options.device.size)
            if first_s < middle < last_s:
                heapq.heappush(heap, self._node(self.options, everybody, first_s, middle, scale, ends=False))
            else:
                middle = first_s
            heapq.heappush(heap, self._node(self.options, everybody, middle, last_s, scale))
        while heap:
            if -heap[0].priority <= gap.allowed(self.value) or self.num_knapsacks >= max_knapsacks:
                break
            node = heapq.heappop(heap)
            if node.last_s <= node.first_s * (1.0 + 4e-16):
                closed = max(closed, -node.priority)
                continue
            middle = node.wished_s
            for low, high, ends in ((node.first_s, middle, False), (middle, node.last_s, node.ends)):
                child = self._node(node.options, node.row, low, high, -node.priority, ends=ends)
                if -child.priority > gap.allowed(self.value):
                    heapq.heappush(heap, child)
                else:
                    closed = max(closed, -child.priority)
        bounds = [closed, *(-node.priority for node in heap[:1])]
        return BlockPlan(
            counts=self.counts,
            delay_s=self.delay_s,
            proof=Proof.of(self.value, bounds, gap, num_steps=self.num_knapsacks),
        )

    def _most(self) -> float:
        """Return more than any uploads contribute together: M devices at most."""
        most = self.num_blocks if self.max_uploads is None else min(self.num_blocks, self.max_uploads)
        own = np.maximum(self.options.contribution[:, 0], 0.0)
        return float(np.sort(own)[max(own.size - most, 0) :].sum()) if most else 0.0

    def _look_around(self, first_s: float, last_s: float) -> None:
        """Find a first incumbent: the best numbers of blocks at a few delays, each by its own best delay."""
        for delay_s in np.exp(np.linspace(math.log(first_s), math.log(last_s), _GRID + 2)[1:-1]):
            sending_s = self.options.sending_s(float(delay_s))
            worth = np.where(self.options.first_s <= delay_s, self.options.worth(sending_s)[0], -np.inf)
            self._solve(worth, float(delay_s), np.arange(self.options.device.size), self.options.offers)

    def _node(
        self,
        options: BlockOptions,
        row: IntArray,
        first_s: float,
        last_s: float,
        bound: float,
        *,
        ends: bool = True,
    ) -> _Node:
        """Return the node of a range of delays with its own bound, no larger than its parent's.

        Where the last delay is another node's, what is possible from then on only is that one's, too.
        """
        here = self.delay_s if first_s <= self.delay_s <= last_s else math.sqrt(first_s * last_s)
        worth, slope = options.worth(options.sending_s(here))
        in_time = options.first_s <= last_s if ends else options.first_s < last_s
        worth = np.where(in_time, worth, -np.inf)
        touch = np.where(in_time, np.maximum(here, options.first_s), here)
        cost, steep = self.delay.cost(here), self.delay.slope(here)
        bounds: list[tuple[float, float]] = []
        is_open = np.zeros(worth.shape, dtype=bool)
        for end in (first_s, last_s):
            lines, price_of_delay = worth + slope * (end - touch), cost + steep * (end - here)
            knapsack, best_s = self._solve(lines, end, row, options.offers)
            bounds.append((knapsack.value - price_of_delay, best_s))
            is_open |= knapsack.bound_with_each(lines, options.offers) - price_of_delay > self.value
        own, wished = max(bounds)
        edge = (last_s / first_s) ** 0.05
        if not first_s * edge < wished < last_s / edge:
            wished = math.sqrt(first_s * last_s)
        wished = min(max(wished, first_s), last_s)
        keep = np.flatnonzero(is_open.any(axis=1))
        most = int(np.flatnonzero(is_open.any(axis=0)).max(initial=-1)) + 1
        options = options.open_ones(is_open, keep, most)
        return _Node(-min(own, bound), first_s, last_s, wished, options, row[keep], ends)

    def _solve(
        self, worth: FloatArray, delay_s: float, row: IntArray, offers: Groups | None
    ) -> tuple[Knapsack, float]:
        """Return the knapsack of these worths and the delay that suits its numbers of blocks best.

        Of a device's offers the best on each number of blocks counts: one of several lines, again a line.
        """
        self.num_knapsacks += 1
        table = worth if offers is None else offers.best(worth.T).T
        found = best_counts(table, self.num_blocks, self.max_uploads)
        counts = np.zeros(self.options.device.size, dtype=np.int64)
        if offers is None:
            counts[row] = found.counts
        else:
            number = found.counts[offers.number]
            own = worth[np.arange(row.size), np.maximum(number, 1) - 1] if row.size else np.zeros(0)
            counts[row] = np.where(offers.leaders(own), number, 0)
        key = counts.tobytes()
        if key not in self._best_delay:
            self._best_delay[key] = self._try(counts, delay_s)
        return found, self._best_delay[key]

    def _try(self, counts: IntArray, guess_s: float) -> float:
        """Return the best delay of these numbers of blocks, and keep them if they are the best so far."""
        delay_s = self.best_delay_s(counts, guess_s)
        if delay_s is None:
            return guess_s
        row = np.flatnonzero(counts)
        chosen = self.options.only(row, counts[row])
        value = float(chosen.worth(chosen.sending_s(delay_s))[0].sum()) - self.delay.cost(delay_s)
        if value > self.value:
            self.value, self.delay_s, self.counts = value, delay_s, counts
        return delay_s

    def best_delay_s(self, counts: IntArray, guess_s: float) -> float | None:
        """Return the best delay of these numbers of blocks; None if there is none at which they all can."""
        row = np.flatnonzero(counts)
        if row.size == 0:
            return None
        chosen = self.options.only(row, counts[row])
        low = float(chosen.first_s.max())
        high = max(self.delay.latest_s(float(chosen.contribution.sum())), min(low, self.delay.deadline_s))
        if low > high * (1.0 + 1e-12) or not math.isfinite(low):
            return None
        low = min(low, high)

        def rise(delay_s: float) -> float:
            return float(chosen.worth(chosen.sending_s(delay_s))[1].sum()) - self.delay.slope(delay_s)

        if rise(low) <= 0.0:
            return low
        return high if rise(high) >= 0.0 else _falling_root(rise, low, high, guess_s)


def _falling_root(falling: Callable[[float], float], low: float, high: float, guess: float) -> float:
    """Return where a falling function crosses 0; on a jump, where it jumps."""
    point = guess if low < guess < high else math.sqrt(low * high)
    past: tuple[float, float] | None = None
    for _ in range(_ROOT_STEPS):
        value = falling(point)
        if value == 0.0:
            return point
        low, high = (point, high) if value > 0.0 else (low, point)
        if high - low <= 1e-13 * high:
            break
        wished = math.nan
        if past is not None and past[1] != value:
            wished = point - value * (point - past[0]) / (value - past[1])
        past = (point, value)
        point = wished if low < wished < high else math.sqrt(low * high)
    return low
