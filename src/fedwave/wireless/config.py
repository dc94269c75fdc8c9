"""The settings of a radio cell, checked when they are read."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from fedwave.units import dbm_to_watt
from fedwave.wireless.distribution import Distribution, bounds

Positive = Annotated[float, Field(gt=0.0, allow_inf_nan=False)]
NonNegative = Annotated[float, Field(ge=0.0, allow_inf_nan=False)]
Probability = Annotated[float, Field(ge=0.0, le=1.0)]
Decibel = Annotated[float, Field(ge=-1000.0, le=1000.0)]  # beyond it the linear value leaves the float range


class _Section(BaseModel):
    """Settings that cannot change and refuse unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")


# Where the devices stand ------------------------------------------------------------------------------------


class DiscPlacement(_Section):
    """Devices spread evenly over the area of a disc (a ring, if they keep a minimum distance)."""

    kind: Literal["disc"] = "disc"
    radius_m: Positive
    min_distance_m: NonNegative = 0.0

    @model_validator(mode="after")
    def _check_ring(self) -> DiscPlacement:
        if self.min_distance_m >= self.radius_m:
            raise ValueError(
                f"min_distance_m must be below radius_m = {self.radius_m:g}, got {self.min_distance_m:g}. "
                "No device fits between the two"
            )
        return self


class DistancePlacement(_Section):
    """Devices at distances drawn uniformly, so that they crowd around the base station."""

    kind: Literal["uniform-distance"] = "uniform-distance"
    min_distance_m: NonNegative
    max_distance_m: Positive

    @model_validator(mode="after")
    def _check_order(self) -> DistancePlacement:
        if self.min_distance_m > self.max_distance_m:
            raise ValueError(
                f"min_distance_m must not exceed max_distance_m = {self.max_distance_m:g}, "
                f"got {self.min_distance_m:g}. Swap them"
            )
        return self


class FilePlacement(_Section):
    """Positions read from a CSV with the columns x_m and y_m; the base station stands at (0, 0)."""

    kind: Literal["file"] = "file"
    path: Path


Placement = Annotated[DiscPlacement | DistancePlacement | FilePlacement, Field(discriminator="kind")]


# What happens between a device and the base station ---------------------------------------------------------


class FadingConfig(_Section):
    """Small-scale fading: a random factor of mean 1 on the power gain.

    Where the channel knows the line of sight, "rician" applies to devices in sight, the others are Rayleigh.
    """

    kind: Literal["none", "rayleigh", "rician"] = "none"
    rician_k_db: Decibel = 9.0  # mean K-factor of UMi and UMa line of sight, TR 38.901 Table 7.5-6
    per_block: bool = True  # False: all blocks of a device fade together


class UniformChannel(_Section):
    """Gains drawn uniformly, one per device, as in the paper's simulation (Table III)."""

    kind: Literal["uniform"] = "uniform"
    low: NonNegative
    high: Positive

    @model_validator(mode="after")
    def _check_order(self) -> UniformChannel:
        if self.low > self.high:
            raise ValueError(f"low must not exceed high = {self.high:g}, got {self.low:g}. Swap them")
        return self


class ThreeGppChannel(_Section):
    """Path loss, line of sight and shadowing of 3GPP TR 38.901, clause 7.4, times fading."""

    kind: Literal["3gpp"] = "3gpp"
    scenario: Literal["umi", "uma", "rma"]
    carrier_frequency_hz: Annotated[float, Field(ge=0.5e9, le=100e9)]  # range of the report's models
    base_station_height_m: Annotated[float, Field(ge=5.0, le=150.0)] | None = None  # None: the scenario's own
    device_height_m: Annotated[float, Field(ge=1.0, le=22.5)] = 1.5
    building_height_m: Annotated[float, Field(ge=5.0, le=50.0)] = 5.0  # RMa only
    street_width_m: Annotated[float, Field(ge=5.0, le=50.0)] = 20.0  # RMa only
    line_of_sight: Literal["random", "always", "never"] = "random"
    shadowing: bool = True
    antenna_gain_db: Decibel = 0.0  # both ends together
    placement: Placement
    fading: FadingConfig = FadingConfig()


class LogDistanceChannel(_Section):
    """Path loss growing with the logarithm of the distance: loss + 10 exponent log10(d / reference)."""

    kind: Literal["log-distance"] = "log-distance"
    reference_loss_db: Decibel
    reference_distance_m: Positive = 1.0
    exponent: Positive
    shadowing_std_db: NonNegative = 0.0
    antenna_gain_db: Decibel = 0.0
    placement: Placement
    fading: FadingConfig = FadingConfig()


class FileChannel(_Section):
    """Power gains from a .npy or .csv file: measured, or made by Sionna, ns-3, DeepMIMO."""

    kind: Literal["file"] = "file"
    path: Path
    in_db: bool = False
    beyond_last_round: Literal["error", "cycle"] = "error"


Channel = Annotated[
    UniformChannel | ThreeGppChannel | LogDistanceChannel | FileChannel, Field(discriminator="kind")
]


# Who else is on the air -------------------------------------------------------------------------------------


class NoInterference(_Section):
    """Nobody else is on the air."""

    kind: Literal["none"] = "none"


class DrawnInterference(_Section):
    """A power for each block, drawn or constant."""

    kind: Literal["drawn"] = "drawn"
    power_w: Distribution


class EvenInterference(_Section):
    """Powers spaced evenly over the blocks, from the cleanest to the worst."""

    kind: Literal["evenly-spaced"] = "evenly-spaced"
    low_w: NonNegative
    high_w: NonNegative


class NoiseRise(_Section):
    """Interference as a rise over thermal noise, drawn for each block: I = (10^(rise/10) - 1) B N0."""

    kind: Literal["noise-rise"] = "noise-rise"
    rise_db: Distribution


class ListedInterference(_Section):
    """A power written down for each block."""

    kind: Literal["listed"] = "listed"
    power_w: tuple[NonNegative, ...]


Interference = Annotated[
    NoInterference | DrawnInterference | EvenInterference | NoiseRise | ListedInterference,
    Field(discriminator="kind"),
]


# The devices' hardware, what may go wrong, and the cell -----------------------------------------------------


class FleetConfig(_Section):
    """What each device's radio and processor can do: a constant, a uniform draw, or a CSV row per device."""

    max_power_w: Distribution | None = None
    max_power_dbm: Distribution | None = None
    max_frequency_hz: Distribution | None = None
    capacitance: Distribution | None = None
    cycles_per_sample: Distribution | None = None
    path: Path | None = None

    @model_validator(mode="after")
    def _one_power(self) -> FleetConfig:
        if self.max_power_w is not None and self.max_power_dbm is not None:
            raise ValueError("max_power_w and max_power_dbm are both given. Keep one of them")
        if self.max_power_dbm is not None and max(map(abs, bounds(self.max_power_dbm))) > 1000.0:
            raise ValueError(
                f"max_power_dbm must lie within 1000 dBm, got {self.max_power_dbm}. Phones send 23"
            )
        return self


class LossConfig(_Section):
    """What can keep an upload from arriving. By default nothing does, as in the paper."""

    outage_snr_db: Decibel | None = None  # below this SNR the upload cannot be decoded
    packet_error_waterfall: Positive | None = None  # m of Chen et al.: error 1 - exp(-m / SNR)
    dropout_probability: Probability = 0.0  # a device leaves between its report and its upload
    deadline_s: Positive | None = None  # uploads that finish later are discarded


class CellConfig(_Section):
    """One base station, its radio blocks and its devices."""

    description: str = ""
    normalised: bool = False  # the paper's unitless numbers: SI sanity checks do not apply
    num_blocks: Annotated[int, Field(ge=1)]
    bandwidth_hz: Positive
    noise_psd_w_per_hz: Positive | None = None
    noise_psd_dbm_per_hz: Decibel | None = None
    noise_figure_db: Decibel = 0.0
    redraw: Literal["static", "each-round"] = "static"
    channel: Channel
    fleet: FleetConfig
    interference: Interference = NoInterference()
    losses: LossConfig = LossConfig()

    @model_validator(mode="after")
    def _one_noise(self) -> CellConfig:
        if (self.noise_psd_w_per_hz is None) == (self.noise_psd_dbm_per_hz is None):
            raise ValueError(
                "exactly one of noise_psd_w_per_hz and noise_psd_dbm_per_hz is needed. "
                "Thermal noise at room temperature is noise_psd_dbm_per_hz = -174"
            )
        return self

    @property
    def effective_noise_psd_w_per_hz(self) -> float:
        """The noise density at the decoder: thermal noise times the receiver's noise figure."""
        if self.noise_psd_w_per_hz is not None:
            thermal_w_per_hz = self.noise_psd_w_per_hz
        else:
            assert self.noise_psd_dbm_per_hz is not None  # _one_noise
            thermal_w_per_hz = dbm_to_watt(self.noise_psd_dbm_per_hz)
        # A figure of 0 dB multiplies by exactly 1: the paper's N0 = 1 stays 1 to the last bit.
        return float(thermal_w_per_hz * 10.0 ** (self.noise_figure_db / 10.0))
