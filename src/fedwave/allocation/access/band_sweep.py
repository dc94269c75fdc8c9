"""Many ranges of delays at once: a price for each, and the bound that its tangents give the whole range.

Any price and any delay of a range bound it, so none of this must be exact: it is what a search node does
(band_search.py), for a table of ranges by uploads. Most ranges are closed by it, and the best is a start.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedwave.allocation.access.band import Band, Moment
from fedwave.allocation.access.band_lines import line_ends
from fedwave.allocation.access.delay_price import DelayPrice
from fedwave.allocation.access.delay_range import DelayRange
from fedwave.allocation.access.groups import Groups
from fedwave.units import BoolArray, FloatArray

_PRICE_STEPS = 6
_SMALL_STEP = 0.1  # of all prices, in logarithms, after which the next ones are the last
_LARGEST_STEP = 3.0  # of a price, in logarithms


@dataclass(frozen=True, kw_only=True, eq=False)
class Sweep:
    """What is known of each of R ranges of delays with nothing decided."""

    first_s: FloatArray  # (R,)
    last_s: FloatArray
    delay_s: FloatArray  # inside, where the tangents touch
    price: FloatArray
    chosen: BoolArray  # (R, n): who uploads at this price and delay
    value: FloatArray  # the priced value there
    bound: FloatArray  # on everything within the range

    def rows(self, keep: BoolArray) -> Sweep:
        """Return some of the ranges."""
        return Sweep(**{name: getattr(self, name)[keep] for name in self.__dataclass_fields__})

    def range_of(self, row: int) -> DelayRange:
        """Return a range, to be searched from where its tangents touch."""
        return DelayRange(
            first_s=float(self.first_s[row]),
            last_s=float(self.last_s[row]),
            guess_s=float(self.delay_s[row]),
            price=float(self.price[row]),
        )


def sweep(
    band: Band,
    delay: DelayPrice,
    first_s: FloatArray,
    last_s: FloatArray,
    price: FloatArray,
    most_uploads: int | None,
) -> Sweep:
    """Return a price for each range, close to the one with the least bound in its middle, and its bounds."""
    delay_s = np.sqrt(first_s * last_s)
    moment = band.at(delay_s[:, None])
    price = _prices(moment, price[:, None], most_uploads)
    nats = moment.nats(price)
    worth = moment.worth(nats, price)
    at_first, at_last = line_ends(
        moment, nats, worth, price, band.at(last_s[:, None]), first_s[:, None], last_s[:, None]
    )
    cost = np.array([delay.cost(float(one)) for one in delay_s])
    steep = np.array([delay.slope(float(one)) for one in delay_s])
    supply = price[:, 0] * band.width_per_s
    ends = [
        _best_sum(lines, most_uploads, band.offers) + supply * end - cost - steep * (end - delay_s)
        for lines, end in ((at_first, first_s), (at_last, last_s))
    ]
    return Sweep(
        first_s=first_s,
        last_s=last_s,
        delay_s=delay_s,
        price=price[:, 0],
        chosen=_chosen(worth, most_uploads, band.offers),
        value=_best_sum(worth, most_uploads, band.offers) + supply * delay_s - cost,
        bound=np.maximum(*ends),
    )


def _prices(moment: Moment[FloatArray], price: FloatArray, most_uploads: int | None) -> FloatArray:
    """Return for each range a price near the least bound: demand meets supply, or jumps past it there."""
    low, high = np.zeros(price.shape), np.full(price.shape, np.inf)  # demand is above supply, or is not
    best, best_bound = price, np.full(price.shape, np.inf)
    hold, load, offers = moment.band.hold_price, moment.band.load, moment.band.offers
    is_last = False
    for _ in range(_PRICE_STEPS):
        nats = moment.nats(price)
        worth = moment.worth(nats, price)
        area = np.where(_chosen(worth, most_uploads, offers), load / nats, 0.0)
        demand = area.sum(axis=1, keepdims=True)
        bound = _best_sum(worth, most_uploads, offers)[:, None] + price * moment.supply
        best = np.where(bound < best_bound, price, best)
        best_bound = np.minimum(bound, best_bound)
        if is_last:
            break
        low = np.where(demand > moment.supply, np.maximum(price, low), low)
        high = np.where(demand > moment.supply, high, np.minimum(price, high))
        pull = (moment.elasticity(nats) * area).sum(axis=1, keepdims=True) * price / (price + hold)
        wanted = np.where(demand > 0.0, demand, 1.0)
        step = np.log(wanted / moment.supply) * wanted / np.maximum(pull, 1e-9 * wanted)
        step = np.where(demand > 0.0, step, -_LARGEST_STEP)
        is_last = bool(((np.abs(step) < _SMALL_STEP) | (high < low * (1.0 + _SMALL_STEP))).all())
        wished = price * np.exp(np.minimum(np.maximum(step, -_LARGEST_STEP), _LARGEST_STEP))
        inside = (low < wished) & (wished < high)
        middle = np.where(np.isfinite(high), np.sqrt(low * np.where(np.isfinite(high), high, 1.0)), wished)
        price = np.where(inside | (low == 0.0), wished, middle)
    return np.asarray(best)


def _chosen(worth: FloatArray, most_uploads: int | None, offers: Groups | None = None) -> BoolArray:
    if offers is not None:
        worth = np.where(offers.leaders(worth), worth, -np.inf)
    chosen = worth > 0.0
    if most_uploads is not None and most_uploads < worth.shape[1]:
        place = worth.shape[1] - most_uploads
        chosen &= worth >= np.partition(worth, place, axis=1)[:, place : place + 1]
    return chosen


def _best_sum(worth: FloatArray, most_uploads: int | None, offers: Groups | None = None) -> FloatArray:
    """Return the sum of what is above 0 in each range, of the largest where their number is limited."""
    if offers is not None:
        worth = offers.best(worth)
    if most_uploads is not None and most_uploads < worth.shape[1]:
        place = worth.shape[1] - most_uploads
        worth = np.partition(worth, place, axis=1)[:, place:]
    return np.asarray(np.maximum(worth, 0.0).sum(axis=1))
