"""One number for every device or block, or a uniform draw for each: how configs spell "1" and "U(0, 1)"."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
from pydantic import Discriminator, Tag, model_validator

from fedwave.settings import FiniteFloat, Section
from fedwave.units import FloatArray


class Uniform(Section):
    """The uniform distribution on [low, high)."""

    low: FiniteFloat
    high: FiniteFloat

    @model_validator(mode="after")
    def _check_order(self) -> Uniform:
        if self.low > self.high:
            raise ValueError(
                f"low must not exceed high, got low = {self.low:g}, high = {self.high:g}. Swap them"
            )
        return self


def _which(value: Any) -> str:
    return "range" if isinstance(value, dict | Uniform) else "number"


Distribution = Annotated[
    Annotated[FiniteFloat, Tag("number")] | Annotated[Uniform, Tag("range")], Discriminator(_which)
]


def draw(distribution: Distribution, size: int, *, rng: np.random.Generator) -> FloatArray:
    """Return ``size`` independent values; a constant takes nothing from ``rng``."""
    if isinstance(distribution, Uniform):
        return rng.uniform(distribution.low, distribution.high, size)
    return np.full(size, float(distribution))


def bounds(distribution: Distribution) -> tuple[float, float]:
    """Return the smallest and largest value the distribution can give."""
    if isinstance(distribution, Uniform):
        return distribution.low, distribution.high
    return float(distribution), float(distribution)
