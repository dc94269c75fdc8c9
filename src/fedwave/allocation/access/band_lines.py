"""The bound of a range of delays, line by line: tangents of what each upload is worth at a price of area.

At a price mu each upload is worth L(mu, delta), concave in delta (more time relaxes the peak power), so it
lies below its tangent. An open upload is worth max(0, L), which lies below the line through the tangent's
ends, each raised to 0. D lies above its own tangent. So sum of the lines + mu W delta - D bounds all delays
of the range at once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedwave.allocation.access.area_price import Priced, choose
from fedwave.allocation.access.band import Delay, Moment
from fedwave.allocation.access.delay_price import DelayPrice
from fedwave.allocation.access.groups import Groups
from fedwave.units import BoolArray, FloatArray


def line_ends(
    moment: Moment[Delay],
    nats: FloatArray,
    worth: FloatArray,
    price: Delay,
    late: Moment[Delay],
    first_s: Delay,
    last_s: Delay,
    must: BoolArray | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Return the values of each upload's tangent at both ends of a range of delays.

    Tangents at the end bound who does not upload at the moment better, unless they are above 0 at the start.
    """
    slope = moment.slope(nats, price)
    at_first = worth - slope * (moment.delay_s - first_s)
    at_last = worth + slope * (last_s - moment.delay_s)
    late_nats = late.nats(price)
    late_worth = late.worth(late_nats, price)
    late_slope = np.where(late.can, late.slope(late_nats, price), 0.0)
    late_first = late_worth - late_slope * (last_s - first_s)
    by_end = (worth <= 0.0) & (late_first <= 0.0)
    if must is not None:
        by_end &= ~must
    by_end |= ~moment.can
    return np.where(by_end, late_first, at_first), np.where(by_end, late_worth, at_last)


@dataclass(frozen=True, kw_only=True, eq=False)
class BandLines:
    """The worth of each upload bounded by a line over a range of delays, given by its values at both ends."""

    at_first: FloatArray  # as if it had to upload
    at_last: FloatArray
    must: BoolArray
    base_first: float  # what is added to them at the ends: mu W delta - D's tangent
    base_last: float
    most_uploads: int | None
    offers: Groups | None = None

    @classmethod
    def of(
        cls,
        found: Priced,
        must: BoolArray,
        first_s: float,
        last_s: float,
        delay: DelayPrice,
        most_uploads: int | None,
    ) -> BandLines:
        """Return the lines over a range of delays that touch at what was found in it."""
        here, price, band = found.moment.delay_s, found.price, found.moment.band
        late = band.at(last_s)
        at_first, at_last = line_ends(
            found.moment, found.nats, found.worth, price, late, first_s, last_s, must
        )
        cost, steep, supply = delay.cost(here), delay.slope(here), price * band.width_per_s
        return cls(
            at_first=at_first,
            at_last=at_last,
            must=must,
            base_first=supply * first_s - cost - steep * (first_s - here),
            base_last=supply * last_s - cost - steep * (last_s - here),
            most_uploads=most_uploads,
            offers=band.offers,
        )

    def _sums(self) -> tuple[float, float]:
        first = self.at_first[choose(self.at_first, self.must, self.most_uploads, self.offers)]
        last = self.at_last[choose(self.at_last, self.must, self.most_uploads, self.offers)]
        return float(first.sum()) + self.base_first, float(last.sum()) + self.base_last

    def bound(self) -> float:
        """Return an upper bound of the value at every delay of the range."""
        return max(self._sums())

    def bound_of(self, chosen: BoolArray) -> float:
        """Return an upper bound of the value of one set at every delay of the range."""
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

    def raised(self, worth: FloatArray, progress: float) -> FloatArray:
        """Return by how much each open upload's line, its ends raised to 0, lies above its worth there.

        ``progress`` is where in the range the tangents touch, from 0 to 1.
        """
        line = (1.0 - progress) * np.maximum(self.at_first, 0.0) + progress * np.maximum(self.at_last, 0.0)
        return np.where(self.must, 0.0, line - np.maximum(worth, 0.0))
