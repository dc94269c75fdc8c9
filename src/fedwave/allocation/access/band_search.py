"""Branch and bound over the delay and over who uploads, for devices that share a band or take turns on it.

A node is a range of delays and a choice for some devices: in, out, or open. Its bound is that of its lines
(band_lines.py), which touch at the best price and delay of the range (best_delay.py). It is exact where no
open upload's line was raised and nobody's worth jumps at that price. What is left is closed by splitting the
range, or by deciding an upload: the one whose line was raised most if it alone matters, else the one that is
closest to indifferent. See docs/allocation-proofs.md.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass, field, replace

import numpy as np

from fedwave.allocation.access.area_price import Priced, at_price, best_price
from fedwave.allocation.access.band import Band
from fedwave.allocation.access.band_lines import BandLines
from fedwave.allocation.access.band_sweep import Sweep, sweep
from fedwave.allocation.access.best_delay import best_delay
from fedwave.allocation.access.delay_price import DelayPrice
from fedwave.allocation.access.delay_range import DelayRange
from fedwave.allocation.access.nats import energy
from fedwave.allocation.access.proof import Gap, Proof
from fedwave.units import BoolArray, FloatArray, IntArray

_GRID = 16  # ranges of delays looked at first
_SWEEPS = 3  # times that what is left of them is split before nodes are opened
_FAR = 1e300  # in place of minus infinity


@dataclass(frozen=True, kw_only=True, eq=False)
class BandPlan:
    """Who uploads with what area by when; the indices are those of the band."""

    index: IntArray
    nats: FloatArray
    delay_s: float
    proof: Proof


@dataclass(order=True)
class _Node:
    priority: float  # minus its bound
    within: DelayRange
    must: BoolArray = field(compare=False)
    band: Band = field(compare=False)  # those that are in or open
    index: IntArray = field(compare=False)


class BandSearch:
    """Maximises the uploads' worth minus D over who uploads, their areas and the delay."""

    def __init__(self, band: Band, delay: DelayPrice, *, max_uploads: int | None) -> None:
        useful = band.contribution > band.energy_price  # the least energy is one unit
        if band.has_slots and delay.hurry is None:
            # Slots add up: the delay is the sum of all areas over W, so eta_2 is one more price of area.
            band = replace(band, hold_price=band.hold_price + delay.weight / band.width_per_s)
            delay = replace(delay, weight=0.0)
        self.kept = np.flatnonzero(useful)
        self.band = band.only(useful)
        self.delay = delay
        self.max_uploads = max_uploads
        self.value = 0.0
        self.found: tuple[IntArray, FloatArray, float] | None = None
        self.num_nodes = 0
        self.pruned = 0.0  # the largest bound of a node that was closed
        self._tried: set[bytes] = set()

    def run(self, *, relative_gap: float, compute_cost: float, max_nodes: int) -> BandPlan:
        """Return a plan within ``relative_gap`` of the optimum of (P), or the best after ``max_nodes``."""
        band = self.band
        scale = float(np.maximum(band.contribution, 0.0).sum())
        gap = Gap(relative=relative_gap, compute_cost=compute_cost, scale=scale)
        first_s, last_s = self._range(scale)
        heap: list[_Node] = []
        if band.size and first_s <= last_s and last_s > 0.0 and self.max_uploads != 0:
            heap = self._look_around(first_s, last_s, gap)
        while heap:
            if -heap[0].priority <= gap.allowed(self.value) or self.num_nodes >= max_nodes:
                break
            node = heapq.heappop(heap)
            for child in self._process(node, gap):
                heapq.heappush(heap, child)
        bounds = [self.pruned, *(-node.priority for node in heap[:1])]
        index, nats, delay_s = self.found or (np.zeros(0, dtype=np.int64), np.zeros(0), 0.0)
        return BandPlan(
            index=self.kept[index],
            nats=nats,
            delay_s=delay_s,
            proof=Proof.of(self.value, bounds, gap, num_steps=self.num_nodes),
        )

    def _range(self, scale: float) -> tuple[float, float]:
        """Return the delays between which somebody may upload at a profit."""
        last_s = self.delay.latest_s(scale)
        if self.band.size == 0:
            return 0.0, last_s
        if self.band.has_slots and self.delay.hurry is None:
            if last_s == math.inf:  # no deadline: at a price of 0 everybody takes what is best for itself
                alone = at_price(
                    self.band.at(1.0), 0.0, np.zeros(self.band.size, dtype=bool), self.max_uploads
                )
                last_s = alone.demand / self.band.width_per_s * (1.0 + 1e-9)
            return last_s, last_s
        first = float(self.band.first_delay_s().min())
        least = self.band.load / np.maximum(self.band.most_nats, 1e-300)
        tiny = float(least.min()) / self.band.width_per_s
        return max(first, tiny) * (1.0 - 1e-12), last_s

    def _look_around(self, first_s: float, last_s: float, gap: Gap) -> list[_Node]:
        """Return the ranges of delays that may hold something better than the best of what they have."""
        nobody, everybody = np.zeros(self.band.size, dtype=bool), np.arange(self.band.size)
        slope = self.delay.slope(math.sqrt(first_s * last_s))
        start = slope / self.band.width_per_s or self.band.hold_price or 1.0
        if self.band.has_slots:  # what slots are worth knows no delay: smaller ranges bound it no better
            within = DelayRange(
                first_s=first_s, last_s=last_s, guess_s=math.sqrt(first_s * last_s), price=start
            )
            return [_Node(-gap.scale, within, nobody, self.band, everybody)]
        edges = np.exp(np.linspace(math.log(first_s), math.log(last_s), _GRID + 1))
        edges[0], edges[-1] = first_s, last_s
        lows, highs = edges[:-1], edges[1:]
        prices, bounds = np.full(lows.shape, start), np.full(lows.shape, gap.scale)
        for level in range(_SWEEPS):
            if level:
                middle = np.sqrt(lows * highs)
                lows, highs = np.concatenate([lows, middle]), np.concatenate([middle, highs])
                prices, bounds = np.tile(prices, 2), np.tile(bounds, 2)
            self.num_nodes += 1
            seen = sweep(self.band, self.delay, lows, highs, prices, self.max_uploads)
            self._try_best(seen)
            bounds = np.minimum(bounds, seen.bound)
            is_open = bounds > gap.allowed(self.value)
            self.pruned = max(self.pruned, float(bounds[~is_open].max(initial=0.0)))
            seen, bounds = seen.rows(is_open), bounds[is_open]
            lows, highs, prices = seen.first_s, seen.last_s, seen.price
            if lows.size <= 1:
                break
        heap = [
            _Node(-float(bounds[r]), seen.range_of(r), nobody, self.band, everybody) for r in range(lows.size)
        ]
        heapq.heapify(heap)
        return heap

    def _try_best(self, seen: Sweep) -> None:
        """Make an incumbent of who uploads in the range with the best priced value."""
        best = int(np.argmax(seen.value))
        if float(seen.value[best]) > self.value:
            self._try_set(np.flatnonzero(seen.chosen[best]), seen.range_of(best))

    def _process(self, node: _Node, gap: Gap) -> list[_Node]:
        self.num_nodes += 1
        within = node.within
        found = best_delay(node.band, node.must, self.delay, within, self.max_uploads)
        if found is None:
            return []
        lines = BandLines.of(found, node.must, within.first_s, within.last_s, self.delay, self.max_uploads)
        bound = min(lines.bound(), -node.priority)
        self._try(node, found, lines)
        if bound <= gap.allowed(self.value):
            self.pruned = max(self.pruned, bound)
            return []
        is_out, is_in = lines.decided(self.value)
        keep = ~is_out
        band, must, index = node.band, (node.must | is_in)[keep], node.index[keep]
        if not keep.all():
            band = band.only(keep)
        loose = np.flatnonzero(~must)
        priced_value = found.bound - self.delay.cost(found.moment.delay_s)
        first_s, last_s = self._narrowed(band, must, within.first_s, within.last_s)
        if first_s > last_s:
            return []

        def child(low: float, high: float, must: BoolArray, keep: BoolArray | None = None) -> _Node:
            kept_band, kept_index = (band, index) if keep is None else (band.only(keep), index[keep])
            kept_must = must if keep is None else must[keep]
            delay_s = found.moment.delay_s
            if not low <= delay_s <= high:
                known_s = self.found[2] if self.found is not None else 0.0
                delay_s = known_s if low < known_s < high else math.sqrt(low * high)
            own = DelayRange(first_s=low, last_s=high, guess_s=delay_s, price=found.price)
            return _Node(-bound, own, kept_must, kept_band, kept_index)

        if loose.size == 0 and (is_in.any() or is_out.any()):
            return [child(first_s, last_s, must)]
        is_raised = bound - priced_value > 0.5 * (bound - self.value)
        progress = (found.moment.delay_s - within.first_s) / max(within.last_s - within.first_s, 1e-300)
        raises = np.where(must, 0.0, lines.raised(found.worth, progress)[keep])
        has_room = self.max_uploads is None or band.size <= self.max_uploads
        is_one = is_raised and has_room and raises.max(initial=0.0) > 0.5 * raises.sum()
        if loose.size == 0 or (is_raised and not is_one):
            middle = found.moment.delay_s
            span = math.log(last_s / first_s) if first_s > 0.0 else math.inf
            if span < 1e-12:  # one delay as far as floats go: decide devices
                if loose.size == 0:
                    self.pruned = max(self.pruned, bound)
                    return []
            else:
                edge = math.exp(0.05 * span)
                if not first_s * edge < middle < last_s / edge:
                    middle = math.sqrt(first_s * last_s)
                return [child(first_s, middle, must), child(middle, last_s, must)]
        distance = -raises if is_one else self._distance(band, found.worth[keep], found)
        pick = int(loose[np.argmin(distance[loose])])
        with_it = must.copy()
        with_it[pick] = True
        stays = None if band.group is None else (band.group != band.group[pick]) | with_it
        without = np.ones(must.size, dtype=bool)
        without[pick] = False
        children = [child(first_s, last_s, must, without)]
        if self.max_uploads is None or np.count_nonzero(with_it) <= self.max_uploads:
            low, high = self._narrowed(band, with_it, first_s, last_s)
            if low <= high:
                children.append(child(low, high, with_it, stays))
        return children

    def _narrowed(self, band: Band, must: BoolArray, first_s: float, last_s: float) -> tuple[float, float]:
        """Return the delays at which all that must upload can, each for itself."""
        if must.any():
            first_s = max(first_s, float(band.first_delay_s()[must].max()))
        return first_s, last_s

    def _distance(self, band: Band, worth: FloatArray, found: Priced) -> FloatArray:
        """Return how far each upload's worth is from where it would be decided the other way."""
        turn = self._threshold(found)
        if band.offers is None:
            return np.abs(worth - turn)
        worth = np.maximum(worth, -_FAR)
        return np.abs(worth - np.maximum(band.offers.rivals(worth), turn))

    def _threshold(self, found: Priced) -> float:
        """Return the worth from which on one uploads: 0, or that of the last for whom there is a place."""
        if self.max_uploads is None or np.count_nonzero(found.chosen) < self.max_uploads:
            return 0.0
        return max(float(found.worth[found.chosen].min(initial=np.inf)), 0.0)

    def _try(self, node: _Node, found: Priced, lines: BandLines) -> None:
        """Make an incumbent of those that upload at the node's saddle, each set once, with its own best.

        A set that its lines keep below the incumbent is not worth the trouble.
        """
        self._try_near(node, found.chosen, found, lines)
        loose = np.flatnonzero(~node.must & np.isfinite(found.worth))
        if loose.size == 0:
            return
        distance = self._distance(node.band, found.worth, found)[loose]
        close = loose[np.argsort(distance, kind="stable")[:2]]
        group = node.band.group
        for pick in close:
            other = found.chosen.copy()
            if group is not None and not other[pick]:
                other[group == group[pick]] = False
            other[pick] = not found.chosen[pick]
            if self.max_uploads is None or np.count_nonzero(other) <= self.max_uploads:
                self._try_near(node, other, found, lines)

    def _try_near(self, node: _Node, chosen: BoolArray, found: Priced, lines: BandLines) -> None:
        if lines.bound_of(chosen) > self.value:
            near = replace(node.within, guess_s=found.moment.delay_s, price=found.price)
            self._try_set(node.index[chosen], near)

    def _try_set(self, index: IntArray, near: DelayRange) -> None:
        """Make an incumbent of a set at its own best delay, which may lie before or after those nearby."""
        key = index.tobytes()
        if index.size == 0 or key in self._tried:
            return
        self._tried.add(key)
        band = self.band.only(index)
        must = np.ones(index.size, dtype=bool)
        own_s, last_s = self._narrowed(band, must, 0.0, self.delay.latest_s(float(band.contribution.sum())))
        within = replace(near, first_s=max(own_s, near.first_s * 1e-3), last_s=last_s)
        if within.first_s > last_s:
            return
        best = best_delay(band, must, self.delay, within, self.max_uploads)
        if best is None:
            return
        if best.demand > band.width_per_s * self.delay.deadline_s:  # by rounding: a price a little higher
            best = best_price(best.moment, must, start=best.price) or best
        # An area that is short by a rounding error takes so much longer; peak powers allow that.
        delay_s = max(best.moment.delay_s, best.demand / band.width_per_s)
        if band.has_slots:
            delay_s = best.demand / band.width_per_s
        if delay_s > self.delay.deadline_s * (1.0 + 1e-12):
            return
        cost = band.energy_price * energy(best.nats) + band.hold_price * band.load / best.nats
        cost = cost + band.circuit_price * delay_s
        value = float((band.contribution - cost).sum()) - self.delay.cost(delay_s)
        if value > self.value:
            self.value, self.found = value, (index, best.nats, delay_s)
