"""Price and delay together by Newton's method: where demand meets supply and no other delay is better.

G(mu, delta) = sum of the worths + mu W delta - D(delta) is convex in mu and concave in delta. Its saddle is
where both slopes vanish; the matrix of second derivatives is never singular, because the mixed one is at
least W. An open upload that would change sides with every step is indifferent: it takes part with a share
theta, and that it is worth nothing is the third equation. Where this does not settle, None is returned,
and the slower nested search of band_search.py does.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from fedwave.allocation.access.area_price import Priced
from fedwave.allocation.access.band import Band, Moment
from fedwave.allocation.access.delay_price import DelayPrice
from fedwave.allocation.access.nats import saving
from fedwave.units import BoolArray, FloatArray, IntArray

_MAX_STEPS = 12
_SETTLED = 1e-11  # relative
_LARGEST_STEP = 1.5  # in logarithms
_ROOM = 0.2  # share of the way to the first delay that a step leaves
_OFTEN = 2  # changes of side after which an upload is taken for indifferent


def newton_saddle(
    band: Band,
    must: BoolArray,
    delay: DelayPrice,
    *,
    first_s: float,
    last_s: float,
    start_s: float,
    start_price: float,
) -> Priced | None:
    """Return the uploads at the saddle within the range of delays, or None if it was not found."""
    if start_price <= 0.0:
        return None
    room_s = _ROOM * (min(last_s, 2.0 * first_s) - first_s)
    walk = _Walk(
        band=band,
        must=must,
        delay=delay,
        first_s=first_s,
        last_s=last_s,
        price=start_price,
        delay_s=min(max(start_s, first_s + room_s), last_s),
        changes=np.zeros(band.size, dtype=np.int64),
    )
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        for step in range(_MAX_STEPS):
            here = walk.look(step)
            if here is None:
                return None
            if here.is_settled:
                return here.priced(walk.inside)
            if not walk.move(here):
                return None
    return None


@dataclass(kw_only=True, eq=False)
class _Walk:
    """Where the search stands."""

    band: Band
    must: BoolArray
    delay: DelayPrice
    first_s: float
    last_s: float
    price: float
    delay_s: float
    changes: IntArray  # of side, of each upload
    inside: BoolArray | None = None
    torn: int = -1  # the indifferent upload
    share: float = 0.0  # with which it takes part

    def look(self, step: int) -> _Point | None:
        """Return slopes and curvatures at the present price and delay; None if those that must cannot."""
        moment = self.band.at(self.delay_s)
        if not moment.can[self.must].all():
            return None
        nats = moment.nats(self.price)
        worth = moment.worth(nats, self.price)
        wanted = worth > 0.0
        if self.band.offers is not None:
            wanted &= self.band.offers.leaders(worth)
        is_stable = self._choose(self.must | wanted, step)
        if self.torn >= 0 and self.band.offers is not None and not self.band.offers.is_alone[self.torn]:
            return None  # torn between two offers
        weight = np.asarray(self.inside, dtype=np.float64)
        if self.torn >= 0:
            weight[self.torn] = self.share
        return _Point.of(self, moment, nats, worth, weight, is_stable)

    def _choose(self, wanted: BoolArray, step: int) -> bool:
        """Take in who gains and leave out who does not; return whether nobody changed sides."""
        if self.inside is None:
            self.inside = wanted
            return True
        differs = self.inside != wanted
        if self.torn >= 0:
            differs[self.torn] = False
        if not differs.any():
            return True
        self.changes[differs] += 1
        self.inside = np.where(differs, wanted, self.inside)
        if self.torn < 0 and step > _OFTEN:
            often = np.where(differs, self.changes, 0)
            if often.max() >= _OFTEN:
                self.torn, self.share = int(np.argmax(often)), 0.5
        return False

    def move(self, here: _Point) -> bool:
        """Take a step of Newton's method in ln mu and ln delta; return whether there was one to take."""
        a, b, c = here.by_price, here.mixed, here.by_delay
        right = (-here.excess * self.price, -here.rise * self.delay_s)
        by_price, by_delay = 0.0, 0.0
        if here.is_at_end and self.torn >= 0:
            by_price = here.indifference / here.own_area  # its worth falls by its area
            self.share = here.share_that_fits
        elif here.is_at_end:
            if not a > 0.0:
                return False
            by_price = right[0] / a
        elif self.torn < 0:
            determinant = a * c - b * b
            if not determinant < 0.0:
                return False
            by_price = (right[0] * c - b * right[1]) / determinant
            by_delay = (a * right[1] - b * right[0]) / determinant
        else:
            own_area, own_slope = here.own_area, here.own_slope
            matrix = np.array([[a, b, -own_area], [b, c, own_slope], [-own_area, own_slope, 0.0]])
            if not np.isfinite(matrix).all():
                return False
            try:
                found = np.linalg.solve(matrix, np.array([*right, -here.indifference]))
            except np.linalg.LinAlgError:
                return False
            by_price, by_delay = float(found[0]), float(found[1])
            self.share += float(found[2])
        if self.torn >= 0 and not 0.0 <= self.share <= 1.0:
            assert self.inside is not None
            self.inside[self.torn], self.torn = self.share > 1.0, -1
        largest = max(abs(by_price), abs(by_delay))
        if not math.isfinite(largest):
            return False
        factor = min(1.0, _LARGEST_STEP / max(largest, 1e-300))
        self.price *= math.exp(factor * by_price)
        # At the first delay somebody's area may be endless: near it in steps that leave room.
        nearest = self.first_s
        if self.delay_s > self.first_s * (1.0 + 1e-9):
            nearest += _ROOM * (self.delay_s - self.first_s)
        self.delay_s = min(max(self.delay_s * math.exp(factor * by_delay), nearest), self.last_s)
        return 1e-280 < self.price < 1e280


@dataclass(frozen=True, kw_only=True, eq=False)
class _Point:
    """G's slopes and second derivatives at a price and a delay, the latter in ln mu and ln delta."""

    moment: Moment[float]
    price: float
    nats: FloatArray
    worth: FloatArray
    excess: float  # slope in mu: supply minus demand
    rise: float  # slope in delta
    by_price: float
    mixed: float
    by_delay: float
    is_at_end: bool  # of the range of delays, and further would be better
    is_settled: bool
    indifference: float = 0.0  # what the torn upload is worth
    own_area: float = 0.0  # its area times mu
    own_slope: float = 0.0  # its slope times delta
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
        band, price, delay_s = walk.band, walk.price, walk.delay_s
        saved, grown, paid = saving(nats), nats * nats * np.exp(nats), price + band.hold_price
        area = weight * band.load / nats
        is_free = (nats < moment.most_nats) & (nats > moment.least_nats)
        reach = np.where(moment.at_peak & (nats >= moment.most_nats), band.reach_per_s, 0.0)
        per_area = reach * band.load / saved
        slope = np.maximum(per_area * paid - reach * band.energy_price, 0.0) - band.circuit_price
        excess = moment.supply - float(area.sum())
        steep = walk.delay.slope(delay_s)
        on = float((weight * band.circuit_price).sum())
        rise = float((weight * slope).sum()) + price * band.width_per_s - steep
        at_end = (delay_s >= walk.last_s and rise > 0.0) or (delay_s <= walk.first_s and rise < 0.0)
        is_level = at_end or abs(rise) <= _SETTLED * (price * band.width_per_s + steep + abs(on))
        bend = float((weight * reach * per_area * paid * grown * nats / (saved * saved)).sum())
        torn, own_area, fits = walk.torn, 0.0, 0.0
        if torn >= 0:
            own = float(band.load[torn] / nats[torn])
            own_area, fits = price * own, walk.share + excess / own
        indifference = float(worth[torn]) if torn >= 0 else 0.0
        return cls(
            moment=moment,
            price=price,
            nats=nats,
            worth=worth,
            excess=excess,
            rise=rise,
            by_price=float(np.where(is_free, area * saved / grown, 0.0).sum()) * price * price / paid,
            mixed=(band.width_per_s + float((weight * per_area).sum())) * price * delay_s,
            by_delay=-(bend + walk.delay.bend(delay_s)) * delay_s * delay_s,
            is_at_end=at_end,
            is_settled=(
                is_stable
                and is_level
                and abs(excess) <= _SETTLED * moment.supply
                and abs(indifference) <= _SETTLED * own_area
            ),
            indifference=indifference,
            own_area=own_area,
            own_slope=float(slope[torn]) * delay_s if torn >= 0 else 0.0,
            share_that_fits=fits,
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
