"""The channel of Sionna's TR 38.901, drawn once for all rounds. Needs the extra ``fedwave[sionna]``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from fedwave.errors import ProblemError
from fedwave.settings import NonNegativeFloat, PositiveFloat, PositiveInt
from fedwave.units import FloatArray
from fedwave.wireless.channels.base import ChannelSection
from fedwave.wireless.placement import PlacementPart, place_devices
from fedwave.wireless.sanity import gain_warnings
from fedwave.wireless.sionna import sionna_gains

_BASE_STATION_M = {"umi": 10.0, "uma": 25.0, "rma": 35.0}


class SionnaConfig(ChannelSection):
    """Gains of Sionna's UMi, UMa or RMa: sight, shadowing and echoes fixed, devices walk through them."""

    kind: Literal["sionna"] = "sionna"
    scenario: Literal["umi", "uma", "rma"]
    carrier_frequency_hz: Annotated[float, Field(ge=0.5e9, le=100e9)]
    base_station_height_m: PositiveFloat | None = None  # None: the scenario's own
    device_height_m: Annotated[float, Field(ge=1.5, le=22.5)] = 1.5
    placement: PlacementPart
    num_rounds: PositiveInt  # all are drawn at once
    round_interval_s: PositiveFloat = 10.0
    speed_km_per_h: NonNegativeFloat = 3.0

    def build(self, *, num_devices: int, num_blocks: int, bandwidth_hz: float, seed: int) -> SionnaChannel:
        """Return the channel after Sionna has drawn all rounds."""
        gains = sionna_gains(
            self.scenario,
            carrier_frequency_hz=self.carrier_frequency_hz,
            position_m=place_devices(self.placement, num_devices, seed=seed),
            base_station_height_m=self.base_station_height_m or _BASE_STATION_M[self.scenario],
            device_height_m=self.device_height_m,
            num_blocks=num_blocks,
            bandwidth_hz=bandwidth_hz,
            num_rounds=self.num_rounds,
            round_interval_s=self.round_interval_s,
            speed_m_per_s=self.speed_km_per_h / 3.6,
            seed=seed,
        )
        return SionnaChannel(gains=gains)


@dataclass(frozen=True, eq=False, kw_only=True)
class SionnaChannel:
    """Gains (rounds, devices, blocks), played round by round."""

    gains: FloatArray
    large_scale: None = None  # Sionna keeps it to itself
    has_own_rounds: bool = True
    ergodic_k_factor: None = None

    @property
    def warnings(self) -> tuple[str, ...]:
        """A gain above 1."""
        return gain_warnings(float(self.gains.max()), advice="Is a device too close?")

    def gain(self, round_index: int, *, rng: np.random.Generator) -> FloatArray:
        """Return the round's gains (n, M)."""
        del rng
        if round_index >= len(self.gains):
            raise ProblemError(
                f"Sionna has drawn {len(self.gains)} rounds, but round {round_index} is asked for. "
                "Raise channel.num_rounds."
            )
        return np.array(self.gains[round_index])
