"""Where the devices stand, a class for each kind, and what their places cost.

The base station is at the origin; distances are on the ground (2D).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Protocol

import numpy as np
from pydantic import model_validator

from fedwave.csv_table import read_columns
from fedwave.errors import ProblemError
from fedwave.parts import PartKind
from fedwave.rng import FleetStream, fleet_generator
from fedwave.settings import FileName, NonNegativeFloat, Part, PositiveFloat
from fedwave.units import BoolArray, FloatArray, db_to_linear
from fedwave.wireless.penetration import Whereabouts
from fedwave.wireless.sanity import gain_warnings


class Placement(Protocol):
    """Where the devices of a cell stand."""

    def positions_m(self, num_devices: int, *, rng: np.random.Generator) -> FloatArray:
        """Return positions (n, 2), the base station at the origin."""
        ...


class PlacementPart(Part):
    """What a channel's ``placement`` names: a kind of ``PLACEMENTS``, or one of the user's own."""

    of: ClassVar[str] = "fedwave.wireless.channels.placement:PLACEMENT"


class PlacementSection(PlacementPart, extra="forbid"):
    """A placement whose options are its fields."""


class DiscPlacement(PlacementSection):
    """Devices spread evenly over the area of a disc (a ring, if they keep a minimum distance)."""

    kind: Literal["disc"] = "disc"
    radius_m: PositiveFloat
    min_distance_m: NonNegativeFloat = 0.0

    @model_validator(mode="after")
    def _check_ring(self) -> DiscPlacement:
        if self.min_distance_m >= self.radius_m:
            raise ValueError(
                f"min_distance_m must be below radius_m = {self.radius_m:g}, got {self.min_distance_m:g}. "
                "No device fits between the two"
            )
        return self

    def positions_m(self, num_devices: int, *, rng: np.random.Generator) -> FloatArray:
        """Return positions (n, 2). The area within r grows with r^2, so r^2 (not r) is drawn uniformly."""
        distance_m = np.sqrt(rng.uniform(self.min_distance_m**2, self.radius_m**2, num_devices))
        return _at_random_angles(distance_m, rng=rng)


class DistancePlacement(PlacementSection):
    """Devices at distances drawn uniformly, so that they crowd around the base station."""

    kind: Literal["uniform-distance"] = "uniform-distance"
    min_distance_m: NonNegativeFloat
    max_distance_m: PositiveFloat

    @model_validator(mode="after")
    def _check_order(self) -> DistancePlacement:
        if self.min_distance_m > self.max_distance_m:
            raise ValueError(
                f"min_distance_m must not exceed max_distance_m = {self.max_distance_m:g}, "
                f"got {self.min_distance_m:g}. Swap them"
            )
        return self

    def positions_m(self, num_devices: int, *, rng: np.random.Generator) -> FloatArray:
        """Return positions (n, 2), at angles drawn uniformly as well."""
        distance_m = rng.uniform(self.min_distance_m, self.max_distance_m, num_devices)
        return _at_random_angles(distance_m, rng=rng)


class FilePlacement(PlacementSection):
    """Positions read from a CSV with the columns x_m and y_m; the base station stands at (0, 0)."""

    kind: Literal["file"] = "file"
    path: FileName

    def num_devices_of_file(self) -> int:
        """Return the number of devices that the file places."""
        return len(self._columns()["x_m"])

    def _columns(self, num_devices: int | None = None) -> dict[str, FloatArray]:
        names = ("x_m", "y_m")
        return read_columns(self.path, known=names, required=names, num_devices=num_devices, what="positions")

    def positions_m(self, num_devices: int, *, rng: np.random.Generator) -> FloatArray:
        """Return positions (n, 2) as the file has them."""
        del rng  # nothing is drawn
        columns = self._columns(num_devices)
        position_m = np.column_stack([columns["x_m"], columns["y_m"]])
        if not np.isfinite(position_m).all():
            device_index = int(np.argmin(np.isfinite(position_m).all(axis=1)))
            raise ProblemError(
                f"The positions file {self.path} has a position that is not finite at device {device_index}. "
                "Write metres from the base station."
            )
        return position_m


def _at_random_angles(distance_m: FloatArray, *, rng: np.random.Generator) -> FloatArray:
    angle_rad = rng.uniform(0.0, 2.0 * np.pi, len(distance_m))
    return np.column_stack([distance_m * np.cos(angle_rad), distance_m * np.sin(angle_rad)])


PLACEMENTS: dict[str, Any] = {
    "disc": DiscPlacement,
    "uniform-distance": DistancePlacement,
    "file": FilePlacement,
}
PLACEMENT = PartKind("placement", PLACEMENTS, ("kind",))


def place_devices(placement: PlacementPart, num_devices: int, *, seed: int) -> FloatArray:
    """Return the devices' positions (n, 2), drawn once for a cell."""
    chosen: Placement = placement.create("cell.channel.placement")
    return chosen.positions_m(num_devices, rng=fleet_generator(seed, FleetStream.POSITION))


@dataclass(frozen=True, eq=False, kw_only=True)
class LargeScale:
    """One value per device; the gain is 10^((antennas - path loss - shadowing - penetration) / 10).

    That is the mean gain of one receive antenna; maximum-ratio combining of N of them adds their powers, so
    the mean gain after it is N times as large.
    """

    position_m: FloatArray  # (n, 2)
    distance_m: FloatArray  # (n,), on the ground
    is_line_of_sight: BoolArray | None  # None: the model does not distinguish
    path_loss_db: FloatArray  # median, without shadowing
    shadowing_db: FloatArray  # positive: more loss
    antenna_gain_db: float  # both ends
    num_receive_antennas: int = 1
    whereabouts: Whereabouts | None = None  # None: everybody is outdoors
    gain: FloatArray = field(init=False)  # linear

    def __post_init__(self) -> None:
        gain_db = self.antenna_gain_db - self.path_loss_db - self.shadowing_db
        if self.whereabouts is not None:
            gain_db = gain_db - self.whereabouts.penetration_db
        object.__setattr__(self, "gain", db_to_linear(gain_db))


def draw_shadowing_db(std_db: FloatArray, *, rng: np.random.Generator) -> FloatArray:
    """Return each device's shadowing loss in dB: normal, mean 0, independent of the other devices'."""
    return rng.standard_normal(len(std_db)) * std_db


def ground_distance_m(position_m: FloatArray) -> FloatArray:
    """Return each device's 2D distance from the base station."""
    return np.hypot(position_m[:, 0], position_m[:, 1])


def place_warnings(large_scale: LargeScale) -> tuple[str, ...]:
    """Return a line if a place gives a gain above 1."""
    return gain_warnings(
        float(large_scale.gain.max()),
        advice="Is a device too close, or a loss in dB of the wrong sign?",
    )
