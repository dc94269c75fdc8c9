"""The settings of modems, amplifiers and the broadcast; by default the ideal ones of the paper."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field, model_validator

from fedwave.settings import NonNegativeFloat, PositiveFloat, Section
from fedwave.units import db_to_linear, dbm_to_watt
from fedwave.wireless.rate import RadioPower, RateModel
from fedwave.wireless.setting_types import Decibel

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
