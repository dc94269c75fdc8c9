"""Branch and bound over the delay and over who uploads, for devices that share a band or take turns on it.

A node is a range of delays and a choice for some devices: in, out, or open. At a price mu of area each upload
is worth L(mu, delta), concave in delta (more time relaxes the peak power), so it lies below its tangent; an
open upload is worth max(0, L), which lies below the line through the tangent's ends, each raised to 0. Hence
sum of the lines + mu W delta - D bounds the node at once for all its delays, and the bound is exact where no
open upload's line was raised and nobody's worth jumps at mu. What is left is closed by splitting the range or
by deciding the upload that is closest to indifferent. See docs/allocation-proofs.md.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass, field, replace

import numpy as np

from fedwave.allocation.access.area_price import Priced, at_price, best_price, choose
from fedwave.allocation.access.band import Band
from fedwave.allocation.access.band_sweep import Sweep, line_ends, sweep
from fedwave.allocation.access.delay_price import DelayPrice
from fedwave.allocation.access.groups import Groups
from fedwave.allocation.access.nats import energy
from fedwave.allocation.access.proof import Gap, Proof
from fedwave.allocation.access.saddle import newton_saddle
from fedwave.units import BoolArray, FloatArray, IntArray

_GRID = 16  # ranges of delays looked at first
_SWEEPS = 3  # times that what is left of them is split before nodes are opened
_MAX_DELAYS = 80  # tried in one node
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
    first_s: float
    last_s: float
    must: BoolArray = field(compare=False)
    band: Band = field(compare=False)  # those that are in or open
    index: IntArray = field(compare=False)
    price: float = field(compare=False)
    guess_s: float = field(compare=False)


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
        if first_s == last_s:
            return [_Node(-gap.scale, first_s, last_s, nobody, self.band, everybody, start, first_s)]
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
            _Node(
                -float(bounds[r]),
                float(lows[r]),
                float(highs[r]),
                nobody,
                self.band,
                everybody,
                float(prices[r]),
                float(seen.delay_s[r]),
            )
            for r in range(lows.size)
        ]
        heapq.heapify(heap)
        return heap

    def _try_best(self, seen: Sweep) -> None:
        """Make an incumbent of who uploads in the range with the best priced value."""
        best = int(np.argmax(seen.value))
        if float(seen.value[best]) > self.value:
            self._try_set(
                np.flatnonzero(seen.chosen[best]),
                first_s=float(seen.first_s[best]),
                guess_s=float(seen.delay_s[best]),
                price=float(seen.price[best]),
            )

    def _process(self, node: _Node, gap: Gap) -> list[_Node]:
        self.num_nodes += 1
        found = self._saddle(node.band, node.must, node.first_s, node.last_s, node.guess_s, node.price)
        if found is None:
            return []
        lines = _Lines.of(node, found, self.delay, self.max_uploads)
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
        first_s, last_s = self._narrowed(band, must, node.first_s, node.last_s)
        if first_s > last_s:
            return []

        def child(low: float, high: float, must: BoolArray, keep: BoolArray | None = None) -> _Node:
            kept_band, kept_index = (band, index) if keep is None else (band.only(keep), index[keep])
            kept_must = must if keep is None else must[keep]
            delay_s = found.moment.delay_s
            if not low <= delay_s <= high:
                known_s = self.found[2] if self.found is not None else 0.0
                delay_s = known_s if low < known_s < high else math.sqrt(low * high)
            return _Node(-bound, low, high, kept_must, kept_band, kept_index, found.price, delay_s)

        if loose.size == 0 and (is_in.any() or is_out.any()):
            return [child(first_s, last_s, must)]
        raised = bound - priced_value
        if loose.size == 0 or raised > 0.5 * (bound - self.value):
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
        pick = int(loose[np.argmin(self._distance(band, found.worth[keep], found)[loose])])
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

    def _saddle(
        self,
        band: Band,
        must: BoolArray,
        first_s: float,
        last_s: float,
        guess_s: float,
        price: float,
    ) -> Priced | None:
        """Return the uploads at the delay in the range where their priced value less D is largest."""
        if must.any():
            late = band.at(last_s)
            needed = float((band.load[must] / late.most_nats[must]).sum())
            if not late.can[must].all() or needed > late.supply * (1.0 + 1e-11):
                return None
        if guess_s in (first_s, last_s):  # often no delay of the range is better than the end that is known
            priced = best_price(band.at(guess_s), must, start=price, most_uploads=self.max_uploads)
            if first_s == last_s or (
                priced is not None and (self._rise(priced) <= 0.0) == (guess_s == first_s)
            ):
                return priced
        if self.max_uploads is None:
            quick = newton_saddle(
                band,
                must,
                self.delay,
                first_s=first_s,
                last_s=last_s,
                start_s=guess_s,
                start_price=price,
            )
            if quick is not None:
                return quick
        low, high = first_s, last_s
        delay_s = min(max(guess_s, first_s), last_s)
        best: Priced | None = None
        past: tuple[float, float] | None = None
        for step in range(_MAX_DELAYS):
            priced = best_price(band.at(delay_s), must, start=price, most_uploads=self.max_uploads)
            if priced is None:
                low = delay_s
                if delay_s >= last_s:
                    return best
                past = None
                delay_s = math.sqrt(low * high) if high / low > 1.0 + 1e-13 else high
                continue
            price = priced.price or price
            best = priced
            rise = self._rise(priced)
            scale = priced.price * band.width_per_s + self.delay.slope(delay_s)
            if abs(rise) <= 1e-11 * scale:
                break
            if rise > 0.0:
                low = delay_s
                if delay_s >= last_s:
                    break
            else:
                high = delay_s
                if delay_s <= first_s:
                    break
            if high <= low * (1.0 + 1e-13):
                break
            here = math.log(delay_s)
            wished = math.nan
            if past is not None and past[1] != rise and past[0] != here:
                wished = here - rise * (here - past[0]) / (rise - past[1])
            past = (here, rise)
            bottom, top = math.log(low), math.log(high)
            if step % 4 == 3:  # an end that stays must not slow the search down
                wished = 0.5 * (bottom + top)
            if not bottom < wished < top:
                # Towards the end of the range at first, in case the best lies there.
                wished = 0.5 * (bottom + top)
                if high == last_s and rise > 0.0:
                    wished = min(here + 0.7, top)
                elif low == first_s and rise < 0.0:
                    wished = max(here - 0.7, bottom)
            delay_s = min(max(math.exp(wished), first_s), last_s)
        return best

    def _rise(self, priced: Priced) -> float:
        """Return how fast the priced value less D grows with the delay."""
        moment = priced.moment
        slope = moment.slope(priced.nats, priced.price)[priced.chosen]
        return float(slope.sum()) + priced.price * moment.band.width_per_s - self.delay.slope(moment.delay_s)

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

    def _try(self, node: _Node, found: Priced, lines: _Lines) -> None:
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

    def _try_near(self, node: _Node, chosen: BoolArray, found: Priced, lines: _Lines) -> None:
        if lines.bound_of(chosen) > self.value:
            self._try_set(
                node.index[chosen], first_s=node.first_s, guess_s=found.moment.delay_s, price=found.price
            )

    def _try_set(self, index: IntArray, *, first_s: float, guess_s: float, price: float) -> None:
        key = index.tobytes()
        if index.size == 0 or key in self._tried:
            return
        self._tried.add(key)
        band = self.band.only(index)
        must = np.ones(index.size, dtype=bool)
        own_s, last_s = self._narrowed(band, must, 0.0, self.delay.latest_s(float(band.contribution.sum())))
        first_s = max(own_s, first_s * 1e-3)
        if first_s > last_s:
            return
        best = self._saddle(band, must, first_s, last_s, guess_s, price)
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


@dataclass(frozen=True, kw_only=True, eq=False)
class _Lines:
    """The worth of each upload bounded by a line over the node's delays, given by its values at both ends."""

    at_first: FloatArray  # as if it had to upload
    at_last: FloatArray
    must: BoolArray
    base_first: float  # what is added to them at the ends: mu W delta - D's tangent
    base_last: float
    most_uploads: int | None
    offers: Groups | None = None

    @classmethod
    def of(cls, node: _Node, found: Priced, delay: DelayPrice, most_uploads: int | None) -> _Lines:
        here, price, band = found.moment.delay_s, found.price, node.band
        at_first, at_last = line_ends(
            found.moment,
            found.nats,
            found.worth,
            price,
            band.at(node.last_s),
            node.first_s,
            node.last_s,
            node.must,
        )
        cost, steep = delay.cost(here), delay.slope(here)
        width = band.width_per_s
        return cls(
            at_first=at_first,
            at_last=at_last,
            must=node.must,
            base_first=price * width * node.first_s - cost - steep * (node.first_s - here),
            base_last=price * width * node.last_s - cost - steep * (node.last_s - here),
            most_uploads=most_uploads,
            offers=band.offers,
        )

    def _sums(self) -> tuple[float, float]:
        first = self.at_first[choose(self.at_first, self.must, self.most_uploads, self.offers)]
        last = self.at_last[choose(self.at_last, self.must, self.most_uploads, self.offers)]
        return float(first.sum()) + self.base_first, float(last.sum()) + self.base_last

    def bound(self) -> float:
        """Return an upper bound of the value at every delay of the node."""
        return max(self._sums())

    def bound_of(self, chosen: BoolArray) -> float:
        """Return an upper bound of the value of one set at every delay of the node."""
        first, last = float(self.at_first[chosen].sum()), float(self.at_last[chosen].sum())
        return max(first + self.base_first, last + self.base_last)

    def decided(self, allowed: float) -> tuple[BoolArray, BoolArray]:
        """Return which open uploads are in nothing above ``allowed``, and which are in all of it."""
        first, last = self._sums()
        gain_first, gain_last = np.maximum(self.at_first, 0.0), np.maximum(self.at_last, 0.0)
        if self.offers is not None:  # one offer takes the place of the other
            gain_first, gain_last = (
                self.offers.best(gain)[self.offers.number] for gain in (gain_first, gain_last)
            )
        with_it = np.maximum(first + self.at_first - gain_first, last + self.at_last - gain_last)
        without = np.maximum(first - gain_first, last - gain_last)
        if self.most_uploads is not None:  # somebody else may take the place
            without = np.full(without.shape, np.inf)
        if self.offers is not None:  # another offer of the same device may
            without = np.where(self.offers.is_alone, without, np.inf)
        return ~self.must & (with_it <= allowed), ~self.must & (without <= allowed)
