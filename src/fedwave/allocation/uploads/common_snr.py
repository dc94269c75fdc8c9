"""A set of pairs at a common SNR where each may send faster: its value, and the SNR that suits it best."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from fedwave.allocation.uploads.delay_cost import DelayCost, falling_root
from fedwave.allocation.uploads.faster_uploads import FasterUploads
from fedwave.allocation.uploads.power import LARGEST_SNR, optimal_snr, steepness
from fedwave.units import FloatArray, IntArray


@dataclass(frozen=True, kw_only=True, eq=False)
class CommonSnr:
    """A set of pairs at a common SNR x, each at x or at its favourite, if that is larger."""

    favourite: FloatArray  # sorted; the sums below have one entry more
    contribution: FloatArray  # of the first k pairs
    unit_cost: FloatArray  # of the first k pairs
    worth: FloatArray  # at their favourites, of all but the first k pairs
    waterfall: float
    circuit_cost: FloatArray | float  # of one pair, or, where prices differ, of the first k

    @classmethod
    def of(
        cls,
        faster: FasterUploads,
        contribution: FloatArray,
        unit_cost: FloatArray,
        where: tuple[IntArray, IntArray],
    ) -> CommonSnr:
        """Return the pairs of these contributions and costs, at these places of the table."""
        favourite = faster.favourite[where]
        order = np.argsort(favourite)
        circuit_cost = faster.circuit_cost
        if isinstance(circuit_cost, np.ndarray):
            circuit_cost = np.concatenate(([0.0], np.cumsum(circuit_cost[where][order])))
        return cls(
            contribution=np.concatenate(([0.0], np.cumsum(contribution[order]))),
            unit_cost=np.concatenate(([0.0], np.cumsum(unit_cost[order]))),
            favourite=favourite[order],
            worth=np.concatenate((np.cumsum(faster.worth[where][order][::-1])[::-1], [0.0])),
            waterfall=faster.waterfall,
            circuit_cost=circuit_cost,
        )

    def value(self, snr: float) -> float:
        """Return what the pairs are worth at a common SNR, delay not counted."""
        count = int(self.favourite.searchsorted(snr))  # those at the common SNR; the others are faster
        value = float(self.worth[count])
        if count:
            success = math.exp(-self.waterfall / snr) if self.waterfall else 1.0
            nats = math.log1p(snr)
            cost = float(self.unit_cost[count]) * snr + self._circuit_cost(count)
            value += float(self.contribution[count]) * success - cost / nats
        return value

    def _circuit_cost(self, count: int) -> float:
        """Return kappa of the first ``count`` pairs together."""
        if isinstance(self.circuit_cost, np.ndarray):
            return float(self.circuit_cost[count])
        return count * self.circuit_cost

    def best_snr(self, delay: DelayCost, *, smallest: float, largest: float) -> float:
        """Return the common SNR in the range with the largest value minus delay cost.

        That difference is concave in e, so its slope falls through 0 once: first the two favourites between
        which it does so, then the point.
        """
        first, last = (int(self.favourite.searchsorted(snr)) for snr in (smallest, largest))
        low, high = first, last  # how many favourites lie below the answer
        while low < high:
            middle = (low + high) // 2
            if self._rise(middle, math.log1p(float(self.favourite[middle])), delay) > 0.0:
                low = middle + 1
            else:
                high = middle
        start = smallest if low == first else float(self.favourite[low - 1])
        end = largest if low == last else float(self.favourite[low])
        if low == 0:
            return end  # nobody has to follow: faster costs nothing yet
        if not self.waterfall and delay.hurry is None:
            price = self._circuit_cost(low) + delay.slope(1.0)
            cost = float(self.unit_cost[low])
            wished = optimal_snr(price / cost) if cost > price / LARGEST_SNR else LARGEST_SNR
            return max(start, min(wished, end))
        return falling_root(lambda nats: self._rise(low, nats, delay), start, end)

    def _rise(self, count: int, nats: float, delay: DelayCost) -> float:
        """Return the slope of value minus delay cost, times M: positive where a larger SNR is better.

        The first ``count`` pairs follow the common SNR.
        """
        rise = self._circuit_cost(count) + delay.slope(nats) - float(self.unit_cost[count]) * steepness(nats)
        if self.waterfall:
            snr = math.expm1(nats)
            success = math.exp(-self.waterfall / snr)
            ratio = nats / snr
            rise += float(self.contribution[count]) * self.waterfall * success * ratio * ratio * (1.0 + snr)
        return rise
