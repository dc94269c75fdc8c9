"""Interference on each block, the power that other cells' devices add to the noise: a class for each kind."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from fedwave.errors import ProblemError
from fedwave.parts import PartKind
from fedwave.settings import NonNegativeFloat
from fedwave.units import FloatArray, db_to_linear
from fedwave.wireless.distribution import Distribution, bounds, draw
from fedwave.wireless.interference_base import InterferenceSection
from fedwave.wireless.neighbour_cells import HexagonalInterference


class NoInterference(InterferenceSection):
    """Nobody else is on the air."""

    kind: Literal["none"] = "none"

    def draw_w(self, *, num_blocks: int, noise_w: float, rng: np.random.Generator) -> FloatArray:
        """Return zeros."""
        del noise_w, rng
        return np.zeros(num_blocks)


class DrawnInterference(InterferenceSection):
    """A power for each block, drawn or constant."""

    kind: Literal["drawn"] = "drawn"
    power_w: Distribution

    def build(self) -> DrawnInterference:
        """Return itself, unless a power could be negative."""
        low_w, _ = bounds(self.power_w)
        if low_w < 0.0:
            raise ProblemError(
                f"interference.power_w must be >= 0, got {low_w:g}. "
                "It is a power in watts; convert dBm with 1e-3 * 10^(x/10)."
            )
        return self

    def draw_w(self, *, num_blocks: int, noise_w: float, rng: np.random.Generator) -> FloatArray:
        """Return a draw for each block."""
        del noise_w
        return draw(self.power_w, num_blocks, rng=rng)


class EvenInterference(InterferenceSection):
    """Powers spaced evenly over the blocks, from the cleanest to the worst."""

    kind: Literal["evenly-spaced"] = "evenly-spaced"
    low_w: NonNegativeFloat
    high_w: NonNegativeFloat

    def draw_w(self, *, num_blocks: int, noise_w: float, rng: np.random.Generator) -> FloatArray:
        """Return the same powers every time."""
        del noise_w, rng
        return np.linspace(self.low_w, self.high_w, num_blocks)


class NoiseRise(InterferenceSection):
    """Interference as a rise over thermal noise, drawn for each block: I = (10^(rise/10) - 1) B N0."""

    kind: Literal["noise-rise"] = "noise-rise"
    rise_db: Distribution

    def build(self) -> NoiseRise:
        """Return itself, unless a rise could be negative, or leaves the range of floats."""
        low_db, high_db = bounds(self.rise_db)
        if low_db < 0.0 or high_db > 1000.0:
            raise ProblemError(
                f"interference.rise_db must lie in 0 to 1000, got {low_db:g} to {high_db:g}. "
                "Interference can only raise the noise; use 0 for none."
            )
        return self

    def draw_w(self, *, num_blocks: int, noise_w: float, rng: np.random.Generator) -> FloatArray:
        """Return the power that lifts each block's noise by its drawn rise."""
        return noise_w * (db_to_linear(draw(self.rise_db, num_blocks, rng=rng)) - 1.0)


class ListedInterference(InterferenceSection):
    """A power written down for each block."""

    kind: Literal["listed"] = "listed"
    power_w: Annotated[tuple[NonNegativeFloat, ...], Field(strict=False)]  # TOML has lists, no tuples

    def build(self, *, num_blocks: int) -> ListedInterference:
        """Return itself, if there is one power per block."""
        if len(self.power_w) != num_blocks:
            raise ProblemError(
                f"interference.power_w lists {len(self.power_w)} blocks, but num_blocks is {num_blocks}. "
                "Give one power per block."
            )
        return self

    def draw_w(self, *, num_blocks: int, noise_w: float, rng: np.random.Generator) -> FloatArray:
        """Return the list."""
        del num_blocks, noise_w, rng
        return np.asarray(self.power_w, dtype=np.float64)


INTERFERENCES: dict[str, Any] = {
    "none": NoInterference,
    "drawn": DrawnInterference,
    "evenly-spaced": EvenInterference,
    "noise-rise": NoiseRise,
    "hexagonal": HexagonalInterference,
    "listed": ListedInterference,
}
INTERFERENCE = PartKind("interference", INTERFERENCES, ("kind", "num_blocks"))
