"""The delay of a range that suits uploads best: Newton's method, or a search in a search.

The priced value less D is concave in the delay. Its slope is known at every delay at which the best price is,
so the delay is found where the slope changes its sign.
"""

from __future__ import annotations

import math

from fedwave.allocation.access.area_price import Priced, at_price, best_price
from fedwave.allocation.access.band import Band
from fedwave.allocation.access.delay_price import DelayPrice
from fedwave.allocation.access.delay_range import DelayRange
from fedwave.allocation.access.saddle import newton_saddle
from fedwave.units import BoolArray

_MAX_DELAYS = 80  # tried for one range
_CLOSE = 1e-12  # relative


def best_delay(
    band: Band, must: BoolArray, delay: DelayPrice, within: DelayRange, max_uploads: int | None
) -> Priced | None:
    """Return the uploads at the delay in the range where their priced value less D is largest.

    None where those that must upload cannot.
    """
    if must.any():
        late = band.at(within.last_s)
        needed = float((band.load[must] / late.most_nats[must]).sum())
        if not late.can[must].all() or needed > late.supply * (1.0 + 1e-11):
            return None
    if within.first_s == within.last_s:
        return best_price(band.at(within.first_s), must, start=within.price, most_uploads=max_uploads)
    if band.has_slots:
        return _of_slots(band, must, delay, within, max_uploads)
    if max_uploads is None or band.size <= max_uploads:
        quick = newton_saddle(band, must, delay, within)
        if quick is not None:
            return quick
    return _searched(band, must, delay, within, max_uploads)


def _of_slots(
    band: Band, must: BoolArray, delay: DelayPrice, within: DelayRange, max_uploads: int | None
) -> Priced | None:
    """Return the same for slots, whose worth knows no delay: the best price of a delay is D' / W.

    At that price the slots take so long together, the shorter the longer the delay may be: both meet once, or
    the slots jump past the delay where somebody is indifferent. The priced value is convex in the price.
    """
    low: Priced | None = None  # the slots take longer than the delay
    high: Priced | None = None
    delay_s = within.nearest(within.guess_s)
    for step in range(_MAX_DELAYS):
        slope = delay.slope(delay_s) / band.width_per_s
        priced = at_price(band.at(delay_s), slope, must, max_uploads)
        own_s = priced.demand / band.width_per_s
        if abs(own_s - delay_s) <= _CLOSE * delay_s:
            return priced
        if own_s > delay_s:
            low = priced
        else:
            high = priced
        if (low is priced and delay_s >= within.last_s) or (high is priced and delay_s <= within.first_s):
            return best_price(priced.moment, must, start=slope, most_uploads=max_uploads)
        if low is None or high is None:
            delay_s = within.nearest(own_s)  # beyond where both meet
            continue
        wished = _slots_between(low, high, delay)
        if wished is None:
            break
        start, end = low.moment.delay_s, high.moment.delay_s
        delay_s = 0.5 * (start + end) if step % 3 == 2 else wished
        if not start < delay_s < end:
            break
    best = [one for one in (low, high) if one is not None]
    return min(best, key=lambda one: one.bound - delay.cost(one.moment.delay_s), default=None)


def _slots_between(low: Priced, high: Priced, delay: DelayPrice) -> float | None:
    """Return the next delay to try between two, or None if tangents in the price leave nothing to gain."""
    start, end = low.moment.delay_s, high.moment.delay_s
    if bool((low.chosen == high.chosen).all()):  # a secant
        missing, left = -low.excess, high.excess
        return start + (end - start) * min(max(missing / (missing + left), 0.01), 0.99)
    value, other = (one.bound - delay.cost(one.moment.delay_s) for one in (low, high))
    if high.price <= low.price:
        return 0.5 * (start + end)
    meet = (value - other + high.excess * high.price - low.excess * low.price) / (high.excess - low.excess)
    lowest = other + high.excess * (meet - high.price)  # the priced value is nowhere below
    if min(value, other) - lowest <= _CLOSE * (abs(other) + high.price * high.moment.supply):
        return None
    share = (meet - low.price) / (high.price - low.price)
    return start + (end - start) * min(max(share, 0.01), 0.99)


def _searched(
    band: Band, must: BoolArray, delay: DelayPrice, within: DelayRange, max_uploads: int | None
) -> Priced | None:
    """Return the same without Newton's method: secants on the slope, with the best price at each delay."""
    low, high, price = within.first_s, within.last_s, within.price
    if within.guess_s in (low, high):  # often no delay of the range is better than the end that is known
        priced = best_price(band.at(within.guess_s), must, start=price, most_uploads=max_uploads)
        if priced is not None and (rise(priced, delay) <= 0.0) == (within.guess_s == low):
            return priced
    delay_s = within.nearest(within.guess_s)
    best: Priced | None = None
    past: tuple[float, float] | None = None
    for step in range(_MAX_DELAYS):
        priced = best_price(band.at(delay_s), must, start=price, most_uploads=max_uploads)
        if priced is None:
            low = delay_s
            if delay_s >= within.last_s:
                return best
            past = None
            delay_s = math.sqrt(low * high) if high / low > 1.0 + 1e-13 else high
            continue
        price = priced.price or price
        best = priced
        slope = rise(priced, delay)
        scale = priced.price * band.width_per_s + delay.slope(delay_s)
        if abs(slope) <= 1e-11 * scale:
            break
        if slope > 0.0:
            low = delay_s
            if delay_s >= within.last_s:
                break
        else:
            high = delay_s
            if delay_s <= within.first_s:
                break
        if high <= low * (1.0 + 1e-13):
            break
        here = math.log(delay_s)
        wished = math.nan
        if past is not None and past[1] != slope and past[0] != here:
            wished = here - slope * (here - past[0]) / (slope - past[1])
        past = (here, slope)
        bottom, top = math.log(low), math.log(high)
        if step % 4 == 3:  # an end that stays must not slow the search down
            wished = 0.5 * (bottom + top)
        if not bottom < wished < top:
            # Towards the end of the range at first, in case the best lies there.
            wished = 0.5 * (bottom + top)
            if high == within.last_s and slope > 0.0:
                wished = min(here + 0.7, top)
            elif low == within.first_s and slope < 0.0:
                wished = max(here - 0.7, bottom)
        delay_s = within.nearest(math.exp(wished))
    return best


def rise(priced: Priced, delay: DelayPrice) -> float:
    """Return how fast the priced value less D grows with the delay."""
    moment = priced.moment
    slope = moment.slope(priced.nats, priced.price)[priced.chosen]
    return float(slope.sum()) + priced.price * moment.band.width_per_s - delay.slope(moment.delay_s)
