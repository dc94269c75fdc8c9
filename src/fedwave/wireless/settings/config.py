"""The settings of a radio cell, checked when they are read."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from fedwave.settings import Decibel, NonNegativeFloat, PositiveFloat, PositiveInt, Probability, Section
from fedwave.units import db_to_linear, dbm_to_watt
from fedwave.wireless.channels import ChannelPart
from fedwave.wireless.delivery import UploadRisks
from fedwave.wireless.interference import InterferencePart, NoInterference
from fedwave.wireless.rate import RadioPower, RateModel
from fedwave.wireless.settings.fleet import FleetConfig

Share = Annotated[float, Field(gt=0.0, le=1.0)]


class RateConfig(Section):
    """What a modem makes of an SINR. By default Shannon's rate, Eq. (25)."""

    place: ClassVar[str] = "rate"

    efficiency: Share = 1.0  # share of Shannon's rate
    max_spectral_efficiency: PositiveFloat | None = None  # bit/s/Hz
    min_sinr_db: Decibel | None = None  # no link below it

    @model_validator(mode="after")
    def _check_range(self) -> RateConfig:
        if self.min_sinr_db is not None and db_to_linear(self.min_sinr_db) >= self._without_floor.max_snr:
            raise ValueError(
                f"min_sinr_db = {self.min_sinr_db:g} lies above where the rate is capped. "
                "Lower it, or raise max_spectral_efficiency"
            )
        return self

    @property
    def _without_floor(self) -> RateModel:
        return RateModel(efficiency=self.efficiency, max_spectral_efficiency=self.max_spectral_efficiency)

    @property
    def model(self) -> RateModel:
        """The same in linear units."""
        return RateModel(
            efficiency=self.efficiency,
            max_spectral_efficiency=self.max_spectral_efficiency,
            min_snr=0.0 if self.min_sinr_db is None else db_to_linear(self.min_sinr_db),
        )


class RadioConfig(Section):
    """What sending drains from a battery beside the power on the air. By default nothing, Eq. (29)."""

    place: ClassVar[str] = "radio"

    amplifier_efficiency: Share = 1.0  # xi
    circuit_power_w: NonNegativeFloat = 0.0

    @property
    def power(self) -> RadioPower:
        """The same as the equations take it."""
        return RadioPower(
            amplifier_efficiency=self.amplifier_efficiency, circuit_power_w=self.circuit_power_w
        )


class DownlinkConfig(Section):
    """The broadcast of the global model at the round's beginning. By default it is free, as in the paper."""

    place: ClassVar[str] = "downlink"
    alternatives: ClassVar[tuple[tuple[str, ...], ...]] = (("power_w", "power_dbm"),)

    broadcast: bool = False
    power_w: PositiveFloat | None = None  # of the base station, over the cell's blocks
    power_dbm: Decibel | None = None
    noise_figure_db: Decibel = 0.0  # of a device's receiver
    noise_rise_db: NonNegativeFloat = 0.0  # what other base stations add
    receive_power_w: NonNegativeFloat = 0.0  # what listening drains from a battery

    @model_validator(mode="after")
    def _one_power(self) -> DownlinkConfig:
        if self.power_w is not None and self.power_dbm is not None:
            raise ValueError("power_w and power_dbm are both given. Keep one of them")
        if self.broadcast and self.power_w is None and self.power_dbm is None:
            raise ValueError(
                "a broadcast needs power_w or power_dbm, got neither. A street cell sends 40 dBm"
            )
        return self

    @property
    def linear_power_w(self) -> float:
        """The base station's power in watts; 0 if none is given."""
        if self.power_dbm is not None:
            return dbm_to_watt(self.power_dbm)
        return self.power_w or 0.0


class LossConfig(Section):
    """What can keep an upload from arriving. By default nothing does, as in the paper."""

    outage_snr_db: Decibel | None = None  # below this SNR the upload cannot be decoded
    outage_margin_db: Annotated[float, Field(ge=0.0, le=1000.0)] = 0.0  # how far above it a planner stays
    packet_error_waterfall: PositiveFloat | None = None  # m of Chen et al.: error 1 - exp(-m / SNR)
    dropout_probability: Probability = 0.0  # a device leaves between its report and its upload
    deadline_s: PositiveFloat | None = None  # uploads that finish later are discarded

    @property
    def risks(self) -> UploadRisks:
        """The same in linear units, as ``upload_outcome`` takes it."""
        return UploadRisks(
            outage_snr=None if self.outage_snr_db is None else db_to_linear(self.outage_snr_db),
            outage_margin=db_to_linear(self.outage_margin_db),
            packet_error_waterfall=self.packet_error_waterfall,
            dropout_probability=self.dropout_probability,
            deadline_s=self.deadline_s,
        )


class CellConfig(Section):
    """One base station, its radio blocks and its devices."""

    alternatives: ClassVar[tuple[tuple[str, ...], ...]] = (("noise_psd_w_per_hz", "noise_psd_dbm_per_hz"),)

    description: str = ""
    normalised: bool = False  # the paper's unitless numbers: SI sanity checks do not apply
    num_blocks: PositiveInt  # M: how many can upload at a time
    blocks_per_device: PositiveInt = 1  # k: each of the M is a group of k blocks
    bandwidth_hz: PositiveFloat  # B, of one block
    noise_psd_w_per_hz: PositiveFloat | None = None
    noise_psd_dbm_per_hz: Decibel | None = None
    noise_figure_db: Decibel = 0.0
    redraw: Literal["static", "each-round"] = "static"
    channel: ChannelPart
    fleet: FleetConfig
    interference: InterferencePart = NoInterference()
    losses: LossConfig = LossConfig()
    rate: RateConfig = RateConfig()
    radio: RadioConfig = RadioConfig()
    downlink: DownlinkConfig = DownlinkConfig()

    @model_validator(mode="after")
    def _one_noise(self) -> CellConfig:
        if (self.noise_psd_w_per_hz is None) == (self.noise_psd_dbm_per_hz is None):
            raise ValueError(
                "exactly one of noise_psd_w_per_hz and noise_psd_dbm_per_hz is needed. "
                "Thermal noise at room temperature is noise_psd_dbm_per_hz = -174"
            )
        return self

    @property
    def group_bandwidth_hz(self) -> float:
        """What one device gets: k B."""
        return self.blocks_per_device * self.bandwidth_hz

    @property
    def effective_noise_psd_w_per_hz(self) -> float:
        """The noise density at the decoder: thermal noise times the receiver's noise figure."""
        # A figure of 0 dB multiplies by exactly 1: the paper's N0 = 1 stays 1 to the last bit.
        return float(self.thermal_noise_psd_w_per_hz * 10.0 ** (self.noise_figure_db / 10.0))

    @property
    def thermal_noise_psd_w_per_hz(self) -> float:
        """The noise density before the receiver adds its own."""
        if self.noise_psd_w_per_hz is not None:
            return self.noise_psd_w_per_hz
        assert self.noise_psd_dbm_per_hz is not None  # _one_noise
        return dbm_to_watt(self.noise_psd_dbm_per_hz)
