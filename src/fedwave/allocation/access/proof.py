"""What a branch and bound has proven when it ends: the same words for every search over a delay."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

_ROUNDING = 1e-13  # of the sums added up


@dataclass(frozen=True, kw_only=True)
class Gap:
    """How far a bound may lie above the best value found: a share of (P)'s objective, or rounding."""

    relative: float
    compute_cost: float  # what (P) costs before anybody uploads
    scale: float  # of what is added up

    @property
    def rounding(self) -> float:
        """Return what sums of this size may be off by."""
        return _ROUNDING * self.scale

    def allowed(self, value: float) -> float:
        """Return the bound from which on a node is closed."""
        return value + max(self.relative * abs(value - self.compute_cost), self.rounding)


@dataclass(frozen=True, kw_only=True)
class Proof:
    """A value of (SP2), and what is known of all others."""

    value: float
    upper_bound: float
    num_steps: int  # nodes or knapsacks
    is_closed: bool  # within the gap asked for
    is_exact: bool  # up to rounding

    @classmethod
    def of(cls, value: float, bounds: Iterable[float], gap: Gap, *, num_steps: int) -> Proof:
        """Return what the largest of the bounds of all nodes proves, open and closed ones."""
        upper = max([value, *bounds]) + (gap.rounding if num_steps else 0.0)
        return cls(
            value=value,
            upper_bound=float(upper),
            num_steps=num_steps,
            is_closed=upper <= gap.allowed(value) + gap.rounding,
            is_exact=upper <= value + 2.0 * gap.rounding,
        )
