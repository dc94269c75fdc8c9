"""The textbook channel: a path loss that grows with the logarithm of the distance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from pydantic import model_validator

from fedwave.errors import ProblemError
from fedwave.rng import FleetStream, fleet_generator
from fedwave.settings import Decibel, NonNegativeFloat, PositiveFloat, PositiveInt
from fedwave.units import FloatArray
from fedwave.wireless.channels.base import ChannelSection
from fedwave.wireless.channels.fading import Fading, FadingPart, NoFading, combined
from fedwave.wireless.channels.placement import (
    LargeScale,
    PlacementPart,
    draw_shadowing_db,
    ground_distance_m,
    place_devices,
    place_warnings,
)
from fedwave.wireless.path_loss import log_distance_path_loss_db


class LogDistanceConfig(ChannelSection):
    """Path loss growing with the logarithm of the distance: loss + 10 exponent log10(d / reference)."""

    kind: Literal["log-distance"] = "log-distance"
    reference_loss_db: Decibel
    reference_distance_m: PositiveFloat = 1.0
    exponent: PositiveFloat
    shadowing_std_db: NonNegativeFloat = 0.0
    antenna_gain_db: Decibel = 0.0  # both ends together
    base_station_antenna_gain_dbi: Decibel = 0.0  # added to it
    num_receive_antennas: PositiveInt = 1  # of the base station, combined by maximum ratio
    placement: PlacementPart
    fading: FadingPart = NoFading()

    @model_validator(mode="after")
    def _check_fading(self) -> LogDistanceConfig:
        if self.fading.kind == "delay-line":
            raise ValueError(
                'fading.kind "delay-line" needs the tables of channel kind "3gpp". Use "rayleigh" or "rician"'
            )
        return self

    def build(self, *, num_devices: int, num_blocks: int, seed: int) -> LogDistanceChannel:
        """Return the channel with its places and shadowing drawn."""
        position_m = place_devices(self.placement, num_devices, seed=seed)
        distance_m = ground_distance_m(position_m)
        _refuse_zero_distance(distance_m)
        large_scale = LargeScale(
            position_m=position_m,
            distance_m=distance_m,
            is_line_of_sight=None,
            path_loss_db=log_distance_path_loss_db(
                distance_m,
                reference_loss_db=self.reference_loss_db,
                reference_distance_m=self.reference_distance_m,
                exponent=self.exponent,
            ),
            shadowing_db=draw_shadowing_db(
                np.full(num_devices, self.shadowing_std_db),
                rng=fleet_generator(seed, FleetStream.SHADOWING),
            ),
            antenna_gain_db=self.antenna_gain_db + self.base_station_antenna_gain_dbi,
            num_receive_antennas=self.num_receive_antennas,
        )
        fading = self.fading.create("cell.channel.fading")
        return LogDistanceChannel(large_scale=large_scale, fading=fading, num_blocks=num_blocks)


@dataclass(frozen=True, eq=False, kw_only=True)
class LogDistanceChannel:
    """Places and shadowing drawn once, fading each round."""

    large_scale: LargeScale
    fading: Fading
    num_blocks: int
    has_own_rounds: bool = False
    ergodic_k_factor: None = None

    @property
    def warnings(self) -> tuple[str, ...]:
        """A gain above 1."""
        return place_warnings(self.large_scale)

    def gain(self, round_index: int, *, rng: np.random.Generator) -> FloatArray:
        """Return the large-scale gains times fresh fading."""
        del round_index
        return combined(self.fading, self.large_scale, num_blocks=self.num_blocks, rng=rng)


def _refuse_zero_distance(distance_m: FloatArray) -> None:
    if not (distance_m > 0).all():
        device_index = int(np.argmin(distance_m))
        raise ProblemError(
            f"Device {device_index} stands at the base station: a log-distance path loss has no value "
            "at 0 m. Move it, or set placement.min_distance_m."
        )
