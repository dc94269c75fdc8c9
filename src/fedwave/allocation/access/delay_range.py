"""A range of delays in which the best one is searched for."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True, order=True)
class DelayRange:
    """The delays of a search, and where it begins: these guesses may be wrong, and order nothing."""

    first_s: float
    last_s: float
    guess_s: float = field(compare=False)
    price: float = field(compare=False)

    def nearest(self, delay_s: float) -> float:
        """Return the delay of the range that is nearest to this one."""
        return min(max(delay_s, self.first_s), self.last_s)
