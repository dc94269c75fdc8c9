"""Where the devices stand: the ``[channel.placement]`` settings, one class for each kind."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, Protocol

import numpy as np
from pydantic import model_validator

from fedwave.parts import PartKind
from fedwave.settings import NonNegativeFloat, Part, PositiveFloat
from fedwave.units import FloatArray
from fedwave.wireless.geometry import place_by_distance, place_in_disc, read_positions
from fedwave.wireless.setting_types import FileName
from fedwave.wireless.streams import FleetStream, fleet_generator


class Placement(Protocol):
    """Where the devices of a cell stand."""

    def positions_m(self, num_devices: int, *, rng: np.random.Generator) -> FloatArray:
        """Return positions (n, 2), the base station at the origin."""
        ...


class PlacementPart(Part):
    """What a channel's ``placement`` names: a kind of ``PLACEMENTS``, or one of the user's own."""

    of: ClassVar[str] = "fedwave.wireless.placement:PLACEMENT"


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
        """Return positions (n, 2), the base station at the origin."""
        return place_in_disc(num_devices, radius_m=self.radius_m, min_distance_m=self.min_distance_m, rng=rng)


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
        """Return positions (n, 2), the base station at the origin."""
        return place_by_distance(
            num_devices, min_distance_m=self.min_distance_m, max_distance_m=self.max_distance_m, rng=rng
        )


class FilePlacement(PlacementSection):
    """Positions read from a CSV with the columns x_m and y_m; the base station stands at (0, 0)."""

    kind: Literal["file"] = "file"
    path: FileName

    def positions_m(self, num_devices: int, *, rng: np.random.Generator) -> FloatArray:
        """Return positions (n, 2), the base station at the origin."""
        del rng  # nothing is drawn
        return read_positions(self.path, num_devices=num_devices)


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
