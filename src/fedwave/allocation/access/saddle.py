"""Price and delay together by Newton's method: where demand meets supply and no other delay is better.

G(mu, delta) = sum of the worths + mu W delta - D(delta) is convex in mu and concave in delta. Its saddle is
where both slopes vanish; the matrix of second derivatives is never singular, because the mixed one is at
least W. Each slope is a difference of two positive sums that are close to powers of price and delay, so the
equations are solved for the logarithms of these sums: ln supply = ln demand, and the same for what a second
more brings and costs. An open upload that would change sides with every step is indifferent: it takes part
with a share theta, and that it is worth nothing is the third equation. Where this does not settle, None is
returned, and the slower search of best_delay.py does.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from fedwave.allocation.access.area_price import Priced, best_price
from fedwave.allocation.access.band import Band, Moment
from fedwave.allocation.access.delay_price import DelayPrice
from fedwave.allocation.access.delay_range import DelayRange
from fedwave.allocation.access.nats import energy, saving
from fedwave.units import BoolArray, FloatArray

_MAX_STEPS = 16
_SETTLED = 1e-11  # relative
_LARGEST_STEP = 1.5  # in logarithms
_ROOM = 0.2  # share of the way to the first delay that a step leaves
_MAX_BACKS = 3  # times that a step is halved
_GROWN = 2.0  # by so much an error may grow in a step
_SMALL_ERROR = 0.5  # an error that may grow to this, in logarithms
_OFTEN = 3  # steps after which uploads should have stopped to come and go
_MAX_RESTS = 4  # times that the best price is found at one delay
_CLOSE = 1e-9  # relative: demand is at supply, and did not jump past it


def newton_saddle(band: Band, must: BoolArray, delay: DelayPrice, within: DelayRange) -> Priced | None:
    """Return the uploads at the saddle within the range of delays, or None if it was not found; no slots."""
    if within.price <= 0.0:
        return None
    wall_s = float(band.first_delay_s()[must].max(initial=0.0))
    start_s = within.guess_s
    if start_s <= wall_s * (1.0 + 1e-9):
        start_s = (1.0 + _ROOM) * wall_s
    walk = _Walk(
        band=band,
        must=must,
        delay=delay,
        within=within,
        wall_s=wall_s,
        price=within.price,
        delay_s=within.nearest(start_s),
    )
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        for step in range(_MAX_STEPS):
            here = walk.look()
            if here is None:
                return None
            if here.is_settled:
                return here.priced(walk.inside)
            if not (walk.settled_price(here, step) or walk.went_back(here) or walk.move(here)):
                return None
    return None


@dataclass(kw_only=True, eq=False)
class _Walk:
    """Where the search stands."""

    band: Band
    must: BoolArray
    delay: DelayPrice
    within: DelayRange
    wall_s: float  # at this delay the area of somebody who must upload is endless
    price: float
    delay_s: float
    inside: BoolArray | None = None
    torn: int = -1  # the indifferent upload
    share: float = 0.0  # with which it takes part
    moment: Moment[float] | None = None  # that was looked at last
    start: tuple[float, float, float] | None = None  # of the last step: its price, delay and error
    num_backs: int = 0  # times that the last step was halved
    num_rests: int = 0  # times that the best price was found at a delay

    def look(self) -> _Point | None:
        """Return slopes and curvatures at the present price and delay; None if those that must cannot."""
        if self.moment is None or self.moment.delay_s != self.delay_s:
            self.moment = self.band.at(self.delay_s)
        moment = self.moment
        if not moment.can[self.must].all():
            return None
        nats = moment.nats(self.price)
        worth = moment.worth(nats, self.price)
        wanted = worth > 0.0
        if self.band.offers is not None:
            wanted &= self.band.offers.leaders(worth)
        is_stable = self._choose(self.must | wanted)
        if self.torn >= 0 and self.band.offers is not None and not self.band.offers.is_alone[self.torn]:
            return None  # torn between two offers
        weight = np.asarray(self.inside, dtype=np.float64)
        if self.torn >= 0:
            weight[self.torn] = self.share
        return _Point.of(self, moment, nats, worth, weight, is_stable)

    def _choose(self, wanted: BoolArray) -> bool:
        """Take in who gains and leave out who does not; return whether nobody changed sides."""
        if self.inside is None:
            self.inside = wanted
            return True
        differs = self.inside != wanted
        if self.torn >= 0:
            differs[self.torn] = False
        if not differs.any():
            return True
        self.inside = np.where(differs, wanted, self.inside)
        return False

    def settled_price(self, here: _Point, step: int) -> bool:
        """Find the best price at the present delay where uploads come and go, or the price to and fro.

        Where demand jumps past supply there, an upload is indifferent: the torn one.
        """
        is_restless = step >= _OFTEN or (here.is_at_end and step > 0)
        is_stuck = here.is_at_end and step > _OFTEN
        if self.num_rests == _MAX_RESTS or not (is_stuck or (is_restless and not here.is_stable)):
            return False
        priced = best_price(here.moment, self.must, start=self.price)
        if priced is None or priced.price <= 0.0:
            return False
        self.num_rests += 1
        self.price, self.inside, self.start = priced.price, priced.chosen, None
        self.torn = -1
        if abs(priced.excess) > _CLOSE * here.moment.supply and not self.must.all():
            area = self.band.load / priced.nats
            self.torn = int(np.argmin(np.where(self.must, np.inf, np.abs(priced.worth) / area)))
            fits = float(priced.excess / area[self.torn]) + float(priced.chosen[self.torn])
            self.share = min(max(fits, 0.0), 1.0)
        return True

    def went_back(self, here: _Point) -> bool:
        """Halve the last step if it went wrong: the error has grown, as where peak powers begin to bind."""
        if self.start is None or here.is_at_end or self.num_backs == _MAX_BACKS:
            return False
        price, delay_s, error = self.start
        if here.error <= max(_GROWN * error, _SMALL_ERROR):
            return False
        self.price, self.delay_s = math.sqrt(price * self.price), math.sqrt(delay_s * self.delay_s)
        self.num_backs += 1
        return True

    def move(self, here: _Point) -> bool:
        """Take a step of Newton's method in ln mu and ln delta; return whether there was one to take."""
        self.start, self.num_backs = (self.price, self.delay_s, here.error), 0
        is_price_alone = here.is_at_end and (self.torn >= 0 or here.by_price > 0.0)
        steps = self._at_the_end(here) if is_price_alone else self._inside(here)
        if steps is None:
            return False
        by_price, by_delay, by_share = steps
        largest = max(abs(by_price), abs(by_delay))
        if not math.isfinite(largest):
            return False
        factor = min(1.0, _LARGEST_STEP / max(largest, 1e-300))
        if self.torn >= 0:
            factor = self._share_out(factor, by_share)
        self.price *= math.exp(factor * by_price)
        self.delay_s = self._within(self.delay_s * math.exp(factor * by_delay))
        return 1e-280 < self.price < 1e280

    def _share_out(self, factor: float, by_share: float) -> float:
        """Move the torn upload's share; return how far the step goes: at most until it is all in or out."""
        share = self.share + factor * by_share
        if 0.0 <= share <= 1.0:
            self.share = share
            return factor
        assert self.inside is not None
        factor = (float(share > 1.0) - self.share) / by_share
        self.inside[self.torn], self.torn = share > 1.0, -1
        return factor

    def _within(self, delay_s: float) -> float:
        """Return the nearest delay of the range to which a step may lead: it leaves room to the wall."""
        nearest = self.wall_s + _ROOM * (self.delay_s - self.wall_s)
        return self.within.nearest(max(delay_s, nearest))

    def _at_the_end(self, here: _Point) -> tuple[float, float, float]:
        """Return the step of the price alone: a delay further out would be better, and is not to be had."""
        if self.torn >= 0:  # its worth falls by its area
            return here.indifference / here.own_area, 0.0, here.share_that_fits - self.share
        return -here.scarcity / here.by_price, 0.0, 0.0

    def _inside(self, here: _Point) -> tuple[float, float, float] | None:
        """Return the steps of ln mu, ln delta and the torn share that solve the linearised equations."""
        matrix = [[here.by_price, here.demand_by_delay], [here.gain_by_price, here.by_delay]]
        (a, b), (c, d) = matrix
        if self.torn >= 0:
            return self._with_torn(here, matrix)
        determinant = a * d - b * c
        if not determinant < 0.0:
            return None
        by_price = (here.urgency * b - here.scarcity * d) / determinant
        by_delay = (here.scarcity * c - here.urgency * a) / determinant
        wished = self.delay_s * math.exp(min(max(by_delay, -_LARGEST_STEP), _LARGEST_STEP))
        allowed = self._within(max(wished, here.bend_s) if wished < self.delay_s else wished)
        if allowed != wished and a > 0.0:  # only so far, at the price that suits
            by_delay = math.log(allowed / self.delay_s)
            by_price = -(here.scarcity + b * by_delay) / a
        return by_price, by_delay, 0.0

    def _with_torn(self, here: _Point, matrix: list[list[float]]) -> tuple[float, float, float] | None:
        """Return the steps with the torn upload's share as a third unknown."""
        rows = np.array(
            [
                [*matrix[0], -here.own_area],
                [*matrix[1], here.own_urgency],
                [-here.own_area, here.own_slope, 0.0],
            ]
        )
        if not np.isfinite(rows).all():
            return None
        try:
            found = np.linalg.solve(rows, np.array([-here.scarcity, -here.urgency, -here.indifference]))
        except np.linalg.LinAlgError:
            return None
        return float(found[0]), float(found[1]), float(found[2])


@dataclass(kw_only=True, eq=False, slots=True)
class _Point:
    """G's slopes at a price and a delay, and how they move with ln mu and ln delta."""

    moment: Moment[float]
    price: float
    nats: FloatArray
    worth: FloatArray
    scarcity: float  # mu demand ln(supply / demand): 0 where they are equal
    urgency: float  # delta gain ln(gain / cost) of a second more: 0 where they are equal
    by_price: float  # of the scarcity with ln mu
    demand_by_delay: float  # of the scarcity with ln delta
    gain_by_price: float  # of the urgency with ln mu
    by_delay: float  # of the urgency with ln delta
    bend_s: float  # the delay beyond which peak powers begin to bind; 0: they do already, or never
    is_at_end: bool  # of the range of delays, and further would be better
    is_stable: bool  # nobody changed sides
    is_settled: bool
    error: float  # how far both equations are from holding, in logarithms
    indifference: float = 0.0  # what the torn upload is worth
    own_area: float = 0.0  # its area times mu
    own_slope: float = 0.0  # its slope times delta
    own_urgency: float = 0.0  # what its share adds to the urgency
    share_that_fits: float = 0.0  # with which demand would meet supply

    @classmethod
    def of(
        cls,
        walk: _Walk,
        moment: Moment[float],
        nats: FloatArray,
        worth: FloatArray,
        weight: FloatArray,
        is_stable: bool,
    ) -> _Point:
        band, price, delay_s, torn = walk.band, walk.price, walk.delay_s, walk.torn
        growth = np.exp(nats)
        saved, grown = saving(nats, growth), nats * nats * growth
        area = weight * band.load / nats
        demand = float(area.sum())
        excess = moment.supply - demand
        is_low = nats < moment.most_nats
        shrinks = np.where(is_low & (nats > moment.least_nats), area * saved / grown, 0.0)
        peak = np.flatnonzero(moment.at_peak & ~is_low & (weight > 0.0))  # few, if any
        part, reach, slow = weight[peak], band.reach_per_s[peak], saved[peak]
        per_area = reach * band.load[peak] / slow
        gains = np.maximum(per_area * price - reach * band.energy_price[peak], 0.0)
        bend = float(part @ (reach * per_area * price * grown[peak] * nats[peak] / (slow * slow)))
        steep, on = walk.delay.slope(delay_s), float(weight @ band.circuit_price)
        gain, cost = price * band.width_per_s + float(part @ gains), steep + on
        rise = gain - cost
        first_s, last_s = walk.within.first_s, walk.within.last_s
        at_end = (delay_s >= last_s and rise > 0.0) or (delay_s <= first_s and rise < 0.0)
        is_level = at_end or abs(rise) <= _SETTLED * (price * band.width_per_s + steep + abs(on))
        urgency, scarcity, ratio, drawn = rise, excess, 1.0, moment.supply
        if gain > 0.0 and cost > 0.0:
            ratio = gain / cost
            urgency = gain * math.log(ratio)
        if demand > 0.0:
            scarcity, drawn = demand * math.log(moment.supply / demand), demand
        per_areas = float(part @ per_area) * delay_s
        own: dict[str, float] = {}
        if torn >= 0:
            own_area = float(band.load[torn] / nats[torn])
            own_gain = float(gains[peak == torn].sum())
            own_cost = float(band.circuit_price[torn])
            own = {
                "indifference": float(worth[torn]),
                "own_area": price * own_area,
                "own_slope": (own_gain - own_cost) * delay_s,
                "own_urgency": (own_gain - ratio * own_cost) * delay_s,
                "share_that_fits": walk.share + excess / own_area,
            }
        return cls(
            moment=moment,
            price=price,
            nats=nats,
            worth=worth,
            scarcity=price * scarcity,
            urgency=delay_s * urgency,
            by_price=float(shrinks.sum()) * price,
            demand_by_delay=(drawn + per_areas) * price,
            gain_by_price=(moment.supply + per_areas) * price,
            by_delay=-(bend + ratio * walk.delay.bend(delay_s)) * delay_s * delay_s,
            bend_s=0.0 if peak.size else _bend_s(band, nats, weight),
            is_at_end=at_end,
            is_stable=is_stable,
            error=abs(scarcity) / drawn + abs(urgency) / max(gain, cost),
            is_settled=(
                is_stable
                and is_level
                and abs(excess) <= _SETTLED * moment.supply
                and (torn < 0 or abs(own["indifference"]) <= _SETTLED * own["own_area"])
            ),
            **own,
        )

    def priced(self, inside: BoolArray | None) -> Priced:
        """Return the uploads here; an indifferent one counts as the side on which it was met."""
        chosen = np.zeros(self.nats.shape, dtype=bool) if inside is None else inside.copy()
        return Priced(
            moment=self.moment,
            price=self.price,
            nats=self.nats,
            worth=self.worth,
            chosen=chosen,
            demand=float((self.moment.band.load[chosen] / self.nats[chosen]).sum()),
            bound=float(self.worth[chosen].sum()) + self.price * self.moment.supply,
        )


def _bend_s(band: Band, nats: FloatArray, weight: FloatArray) -> float:
    """Return the delay half-way between where peak power binds the first upload and where it forbids it."""
    inside = weight > 0.0
    binds_s = energy(nats[inside]) / band.reach_per_s[inside]
    if binds_s.size == 0:
        return 0.0
    first = int(np.argmax(binds_s))
    return 0.5 * float(binds_s[first] + 1.0 / band.reach_per_s[inside][first])
