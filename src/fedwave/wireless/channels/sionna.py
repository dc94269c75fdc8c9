"""Channel gains from Sionna's TR 38.901: one topology, moving devices, rounds on the time axis.

Places, lines of sight, shadowing and echoes are drawn once; from round to round devices move through their
echoes. (A new topology in each round would draw sight and shadowing anew: gains would jump by 10 dB.)
Sionna, of the extra ``fedwave[sionna]``, is imported here alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from fedwave.errors import ProblemError, import_extra
from fedwave.settings import NonNegativeFloat, PositiveFloat, PositiveInt
from fedwave.units import FloatArray
from fedwave.wireless.channels.base import ChannelSection
from fedwave.wireless.channels.placement import PlacementPart, place_devices
from fedwave.wireless.sanity import gain_warnings

SUBCARRIERS_PER_BLOCK = 12
_MODELS = {"umi": "UMi", "uma": "UMa", "rma": "RMa"}
_DEVICES_AT_A_TIME = 64  # bounds the memory of the frequency responses
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


def sionna_gains(
    scenario: str,
    *,
    carrier_frequency_hz: float,
    position_m: FloatArray,
    base_station_height_m: float,
    device_height_m: float,
    num_blocks: int,
    bandwidth_hz: float,
    num_rounds: int,
    round_interval_s: float,
    speed_m_per_s: float,
    seed: int,
) -> FloatArray:
    """Return power gains (rounds, devices, blocks): uplink, one vertical omnidirectional antenna at each end.

    A block's gain is the mean over its 12 subcarriers. Devices walk in directions of their own.
    """
    phy = import_extra("sionna.phy", purpose="A channel of Sionna", extra="sionna")
    tr38901 = import_extra("sionna.phy.channel.tr38901", purpose="A channel of Sionna", extra="sionna")
    torch = import_extra("torch", purpose="A channel of Sionna", extra="sionna")
    phy.config.seed = seed
    model = _model(tr38901, scenario, carrier_frequency_hz)
    num_devices = len(position_m)
    heading_rad = np.random.default_rng(seed).uniform(0.0, 2.0 * np.pi, num_devices)

    def tensor(values: Any) -> Any:
        return torch.tensor(np.asarray(values)[np.newaxis], dtype=torch.float32)

    standing = np.zeros((num_devices, 1))
    model.set_topology(
        ut_loc=tensor(np.column_stack([position_m, standing + device_height_m])),
        bs_loc=tensor([[0.0, 0.0, base_station_height_m]]),
        ut_orientations=tensor(np.zeros((num_devices, 3))),
        bs_orientations=tensor(np.zeros((1, 3))),
        ut_velocities=tensor(
            speed_m_per_s * np.column_stack([np.cos(heading_rad), np.sin(heading_rad), standing])
        ),
        in_state=torch.zeros((1, num_devices), dtype=torch.bool),
    )
    with torch.no_grad():
        paths, delay_s = model(num_time_samples=num_rounds, sampling_frequency=1.0 / round_interval_s)
        return _block_gains(torch, paths, delay_s, num_blocks=num_blocks, bandwidth_hz=bandwidth_hz)


def _model(tr38901: Any, scenario: str, carrier_frequency_hz: float) -> Any:
    def antenna() -> Any:
        return tr38901.PanelArray(
            num_rows_per_panel=1,
            num_cols_per_panel=1,
            polarization="single",
            polarization_type="V",
            antenna_pattern="omni",
            carrier_frequency=carrier_frequency_hz,
        )

    indoors = {} if scenario == "rma" else {"o2i_model": "low"}  # asked for, though all are outdoors
    return getattr(tr38901, _MODELS[scenario])(
        carrier_frequency=carrier_frequency_hz,
        ut_array=antenna(),
        bs_array=antenna(),
        direction="uplink",
        **indoors,
    )


def _block_gains(torch: Any, paths: Any, delay_s: Any, *, num_blocks: int, bandwidth_hz: float) -> FloatArray:
    """Return (rounds, devices, blocks) of [1, 1, 1, devices, 1, paths, rounds] and [1, 1, devices, paths]."""
    spacing_hz = bandwidth_hz / SUBCARRIERS_PER_BLOCK
    num_subcarriers = num_blocks * SUBCARRIERS_PER_BLOCK
    frequency_hz = (torch.arange(num_subcarriers) - (num_subcarriers - 1) / 2.0) * spacing_hz
    amplitude, delay_s = paths[0, 0, 0, :, 0], delay_s[0, 0]  # (devices, paths, rounds), (devices, paths)
    num_devices, _, num_rounds = amplitude.shape
    gains = np.empty((num_rounds, num_devices, num_blocks))
    for start in range(0, num_devices, _DEVICES_AT_A_TIME):
        part = slice(start, start + _DEVICES_AT_A_TIME)
        phase = -2.0 * torch.pi * frequency_hz[None, :, None] * delay_s[part, None, :]
        response = (
            torch.polar(torch.ones_like(phase), phase) @ amplitude[part]
        )  # (devices, subcarriers, rounds)
        power = (response.abs().double() ** 2).reshape(-1, num_blocks, SUBCARRIERS_PER_BLOCK, num_rounds)
        gains[:, part] = power.mean(dim=2).permute(2, 0, 1).numpy()
    return gains
