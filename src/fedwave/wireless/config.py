"""The settings of a radio cell, checked when they are read."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from fedwave.settings import PositiveFloat, PositiveInt, Section
from fedwave.units import db_to_linear, dbm_to_watt
from fedwave.wireless.channels import ChannelPart
from fedwave.wireless.delivery import UploadRisks
from fedwave.wireless.fleet_draw import FleetConfig
from fedwave.wireless.interference import NoInterference
from fedwave.wireless.interference_base import InterferencePart
from fedwave.wireless.radio_settings import DownlinkConfig, RadioConfig, RateConfig
from fedwave.wireless.setting_types import Decibel, Probability


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
