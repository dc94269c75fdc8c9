"""The price of area at a given delay: where what the uploads want is what there is.

With a price mu per unit of area each upload decides for itself, and for every mu >= 0

    g(mu) = sum of the worths of those that upload + mu supply

bounds the value of all choices: weak duality. g is convex, and its least value is where demand meets supply,
or where the demand jumps past it because one upload more or less becomes worth it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from fedwave.allocation.access.band import Moment
from fedwave.allocation.access.groups import Groups
from fedwave.allocation.access.nats import LEAST_NATS
from fedwave.units import BoolArray, FloatArray

_BALANCED = 1e-11  # relative: demand and supply are as good as equal
_CLOSE = 1e-9  # g is known to this share of its terms: far below any gap asked for
_MAX_STEPS = 100
_NO_PRICE = 1e-200
_PATIENCE = 12


@dataclass(frozen=True, kw_only=True, eq=False)
class Priced:
    """What the uploads do at a price."""

    moment: Moment[float]
    price: float
    nats: FloatArray
    worth: FloatArray  # of each upload, at this price; minus infinity if it cannot be
    chosen: BoolArray
    demand: float
    bound: float  # g

    @property
    def excess(self) -> float:
        """Return supply minus demand: the slope of g."""
        return self.moment.supply - self.demand


def choose(
    worth: FloatArray, must: BoolArray, most_uploads: int | None, offers: Groups | None = None
) -> BoolArray:
    """Return who uploads: who must, and who is worth it, the best of them where their number is limited.

    Of several offers of a device the best counts; who must upload has no other.
    """
    chosen = must | (worth > 0.0)
    if offers is not None:
        chosen &= must | offers.leaders(worth)
    if most_uploads is None or np.count_nonzero(chosen) <= most_uploads:
        return chosen
    left = most_uploads - int(np.count_nonzero(must))
    rank = np.where(must | ~chosen, -np.inf, worth)
    best = np.argsort(-rank, kind="stable")[: max(left, 0)]
    limited = must.copy()
    limited[best[rank[best] > 0.0]] = True
    return limited


def at_price(moment: Moment[float], price: float, must: BoolArray, most_uploads: int | None) -> Priced:
    """Return what the uploads do at this price."""
    nats = moment.nats(price)
    worth = moment.worth(nats, price)
    chosen = choose(worth, must, most_uploads, moment.band.offers)
    return Priced(
        moment=moment,
        price=price,
        nats=nats,
        worth=worth,
        chosen=chosen,
        demand=float((moment.band.load[chosen] / nats[chosen]).sum()),
        bound=float(worth[chosen].sum()) + price * moment.supply,
    )


def best_price(
    moment: Moment[float], must: BoolArray, *, start: float, most_uploads: int | None = None
) -> Priced | None:
    """Return the uploads at the price with the least bound; None if those that must cannot all have a share.

    Demand is never above supply by more than rounding, unless it jumps there.
    """
    least = moment.band.load[must] / moment.most_nats[must]
    if not moment.can[must].all() or float(least.sum()) > moment.supply * (1.0 + _BALANCED):
        return None
    dear: Priced | None = None  # demand <= supply
    cheap: Priced | None = None  # demand > supply
    price, stride = start if start > 0.0 else 1.0, 4.0
    for step in range(_MAX_STEPS):
        tried = at_price(moment, price, must, most_uploads)
        if tried.demand <= moment.supply:
            dear = tried
            if price == 0.0 or tried.excess <= _BALANCED * moment.supply:
                return tried
        else:
            cheap = tried
        if dear is not None and cheap is not None:
            wished = _between(cheap, dear)
            if wished is None:
                break
            next_price = wished
            if step % 3 == 2:  # a side that stays must not slow the search down
                next_price = math.sqrt(cheap.price * dear.price) if cheap.price > 0.0 else 0.5 * dear.price
        else:
            wished = _newton(tried)
            if dear is None and wished is None and bool((tried.chosen == must).all()):
                return tried  # those that must hold all there is: no price makes them take less
            next_price = price * stride if dear is None else price / stride
            if wished is not None and (wished > price) == (dear is None):
                next_price = min(next_price, wished) if dear is None else max(next_price, wished)
            stride = min(stride * stride, 1e12)
            if next_price < _NO_PRICE or (step == 1 and cheap is None and _may_be_free(moment)):
                next_price = 0.0
            if step > _PATIENCE:  # powers of the price lead nowhere
                next_price = price * stride if dear is None else price / stride
            if not next_price < 1e280:
                break
        price = next_price
    if dear is None or cheap is None:
        return dear if dear is not None else cheap
    # Where demand jumps past supply the side with the lower bound counts; else both are as good as equal.
    return cheap if cheap.bound < dear.bound - _CLOSE * abs(dear.bound) else dear


def _may_be_free(moment: Moment[float]) -> bool:
    """Return whether demand is finite at no price: something else bounds the areas."""
    return moment.band.hold_price > 0.0 or bool((moment.least_nats > 10.0 * LEAST_NATS).any())


def _newton(tried: Priced) -> float | None:
    """Return the price at which demand would meet supply if it were a power of the price."""
    if tried.demand <= 0.0 or tried.price <= 0.0:
        return None
    area = tried.moment.band.load[tried.chosen] / tried.nats[tried.chosen]
    shares = tried.moment.elasticity(tried.nats)[tried.chosen] * area
    pull = float(shares.sum()) / tried.demand
    pull *= tried.price / (tried.price + tried.moment.band.hold_price)
    if pull < 1e-9:
        return None
    # A little beyond, so that a smooth demand ends just below supply, and both sides are met.
    step = (math.log(tried.demand / tried.moment.supply) + 0.5 * _BALANCED) / pull
    return tried.price * math.exp(min(max(step, -5.0), 5.0))


def _between(cheap: Priced, dear: Priced) -> float | None:
    """Return the next price to try between two, or None if their tangents leave nothing to gain."""
    slope = dear.excess - cheap.excess  # > 0, both being slopes of a convex function
    if slope <= 0.0 or dear.price <= cheap.price * (1.0 + 1e-15):
        return None
    meet = (cheap.bound - dear.bound + dear.excess * dear.price - cheap.excess * cheap.price) / slope
    lowest = dear.bound + dear.excess * (meet - dear.price)  # g is nowhere below
    scale = abs(dear.bound) + dear.price * dear.moment.supply
    is_smooth = bool((cheap.chosen == dear.chosen).all())
    if not is_smooth and min(cheap.bound, dear.bound) - lowest <= _CLOSE * scale:
        return None
    if is_smooth:
        nearer = dear if dear.excess < -cheap.excess else cheap
        wished = _newton(nearer)
        if wished is not None and cheap.price < wished < dear.price:
            return wished
        return cheap.price + (dear.price - cheap.price) * min(max(-cheap.excess / slope, 1e-3), 1.0 - 1e-3)
    if not cheap.price < meet < dear.price:
        return 0.5 * (cheap.price + dear.price)
    edge = 1e-3 * (dear.price - cheap.price)
    return min(max(meet, cheap.price + edge), dear.price - edge)
