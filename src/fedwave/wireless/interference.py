"""Interference on each block, the power that other cells' devices add to the noise: a class for each kind."""

from __future__ import annotations

import math
from typing import Annotated, Any, ClassVar, Literal, Protocol

import numpy as np
from pydantic import Field

from fedwave.errors import ProblemError
from fedwave.parts import PartKind
from fedwave.settings import Decibel, NonNegativeFloat, Part, PositiveFloat, Probability
from fedwave.units import FloatArray, db_to_linear, dbm_to_watt
from fedwave.wireless.path_loss import log_distance_path_loss_db
from fedwave.wireless.settings.distribution import Distribution, bounds, draw


class Interference(Protocol):
    """One way to say how much others disturb each block."""

    def draw_w(self, *, num_blocks: int, noise_w: float, rng: np.random.Generator) -> FloatArray:
        """Return I_m for each block, shape (M,). ``noise_w`` is the thermal noise B N0 in one block."""
        ...


class InterferencePart(Part):
    """What a cell's ``interference`` names: a kind of ``INTERFERENCES``, or one of the user's own."""

    of: ClassVar[str] = "fedwave.wireless.interference:INTERFERENCE"

    kind: str = "none"


class InterferenceSection(InterferencePart, extra="forbid"):
    """Interference whose options are its fields."""


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
    """Interference as a rise over thermal noise, drawn for each block: I = (10^(rise/10) - 1) B N0.

    With ``averaged`` nothing is drawn: uploads outlast the neighbours' slots, so every block has the mean
    of I. By Jensen they reach at least the rate that this mean promises: ln(1 + S / (N + I)) is convex in I.
    """

    kind: Literal["noise-rise"] = "noise-rise"
    rise_db: Distribution
    averaged: bool = False

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
        """Return the power that lifts each block's noise by its drawn rise, or the mean of such powers."""
        if self.averaged:
            return np.full(num_blocks, noise_w * (self.mean_rise - 1.0))
        return noise_w * (db_to_linear(draw(self.rise_db, num_blocks, rng=rng)) - 1.0)

    @property
    def mean_rise(self) -> float:
        """E 10^(rise/10), linear; of a uniform rise (10^(b/10) - 10^(a/10)) / ((b - a) ln(10) / 10)."""
        low_db, high_db = bounds(self.rise_db)
        low, high = db_to_linear(low_db), db_to_linear(high_db)
        return low if low == high else (high - low) / math.log(high / low)


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


class HexagonalInterference(InterferenceSection):
    """Six hexagonal cells around ours; in each, a device on every block that is in use there.

    A neighbour's device sends P = min(P_max, P0 + alpha PL) to its own base station (TS 38.213, clause 7.1.1,
    for one block) and is heard by ours. Path loss grows with the logarithm of the distance.
    """

    kind: Literal["hexagonal"] = "hexagonal"
    site_distance_m: PositiveFloat  # between neighbouring base stations
    p0_dbm: Decibel  # received power that a device aims at if alpha = 1, per block
    alpha: Annotated[float, Field(ge=0.0, le=1.0)] = 1.0  # share of its path loss that a device makes up for
    max_power_dbm: Decibel = 23.0
    load: Probability = 1.0  # share of a neighbour's blocks in use
    reference_loss_db: Decibel
    reference_distance_m: PositiveFloat = 1.0
    exponent: PositiveFloat
    shadowing_std_db: NonNegativeFloat = 0.0  # independent towards the two base stations
    min_distance_m: PositiveFloat = 10.0  # to the own base station

    def draw_w(self, *, num_blocks: int, noise_w: float, rng: np.random.Generator) -> FloatArray:
        """Return the power that arrives from the six cells on each block."""
        del noise_w
        shape = (6, num_blocks)
        offset_m = points_in_hexagon(shape, inner_radius_m=self.site_distance_m / 2.0, rng=rng)
        site_m = neighbour_sites_m(self.site_distance_m)[:, np.newaxis, :]
        own_db = self._loss_db(np.linalg.norm(offset_m, axis=-1), rng=rng)
        ours_db = self._loss_db(np.linalg.norm(site_m + offset_m, axis=-1), rng=rng)
        power_dbm = np.minimum(self.max_power_dbm, self.p0_dbm + self.alpha * own_db)
        is_on_air = rng.random(shape) < self.load
        heard_w: FloatArray = dbm_to_watt(power_dbm) * db_to_linear(-ours_db) * is_on_air
        total_w: FloatArray = heard_w.sum(axis=0)
        return total_w

    def _loss_db(self, distance_m: FloatArray, *, rng: np.random.Generator) -> FloatArray:
        median_db = log_distance_path_loss_db(
            np.maximum(distance_m, self.min_distance_m),
            reference_loss_db=self.reference_loss_db,
            reference_distance_m=self.reference_distance_m,
            exponent=self.exponent,
        )
        return median_db + self.shadowing_std_db * rng.standard_normal(distance_m.shape)


def neighbour_sites_m(site_distance_m: float) -> FloatArray:
    """Return the six nearest sites of a hexagonal grid, (6, 2); ours is the origin."""
    angle_rad = math.pi / 6.0 + math.pi / 3.0 * np.arange(6)
    return site_distance_m * np.column_stack([np.cos(angle_rad), np.sin(angle_rad)])


def points_in_hexagon(
    shape: tuple[int, ...], *, inner_radius_m: float, rng: np.random.Generator
) -> FloatArray:
    """Return points spread evenly over a hexagon with a corner on the x axis, shape + (2,).

    It is made of three rhombi at its centre, each with two corners of the hexagon next but one as its sides.
    """
    first_rad = 2.0 * math.pi / 3.0 * rng.integers(0, 3, shape)
    along, across = rng.random((2, *shape)) * inner_radius_m * 2.0 / math.sqrt(3.0)
    second_rad = first_rad + 2.0 * math.pi / 3.0
    return np.stack(
        [
            along * np.cos(first_rad) + across * np.cos(second_rad),
            along * np.sin(first_rad) + across * np.sin(second_rad),
        ],
        axis=-1,
    )


INTERFERENCES: dict[str, Any] = {
    "none": NoInterference,
    "drawn": DrawnInterference,
    "evenly-spaced": EvenInterference,
    "noise-rise": NoiseRise,
    "hexagonal": HexagonalInterference,
    "listed": ListedInterference,
}
INTERFERENCE = PartKind("interference", INTERFERENCES, ("kind", "num_blocks"))
