"""The settings of a radio cell, checked when they are read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, ValidationError, model_validator
from pydantic_core import InitErrorDetails

from fedwave.errors import did_you_mean
from fedwave.settings import Decibel, NonNegativeFloat, PositiveFloat, PositiveInt, Probability, Section
from fedwave.units import db_to_linear, dbm_to_watt
from fedwave.wireless.channels import ChannelPart
from fedwave.wireless.delivery import UploadRisks
from fedwave.wireless.interference import InterferencePart, NoInterference
from fedwave.wireless.modem_mean import FLOOR_LIFT, planned_rate
from fedwave.wireless.power_sets import POWER_SETS, WaitingKind
from fedwave.wireless.rate import RadioPower, RateModel
from fedwave.wireless.settings.fleet import FleetConfig
from fedwave.wireless.sleep import NEVER_ASLEEP, Waiting

Share = Annotated[float, Field(gt=0.0, le=1.0)]


class RateConfig(Section):
    """What a modem makes of an SINR. By default Shannon's rate, Eq. (25)."""

    place: ClassVar[str] = "rate"

    efficiency: Share = 1.0  # share of Shannon's rate
    max_spectral_efficiency: PositiveFloat | None = None  # bit/s/Hz
    min_sinr_db: Decibel | None = None  # no link below it
    # Cap and floor act on each moment of the fading; False: on the mean SINR that an ergodic upload meets.
    per_moment: bool = False

    @model_validator(mode="after")
    def _check_range(self) -> RateConfig:
        if self.min_sinr_db is None:
            return self
        floor, cap = db_to_linear(self.min_sinr_db), self._without_floor
        if self.per_moment:  # a plan's floor is higher, its cap lower
            floor, cap = FLOOR_LIFT * floor, planned_rate(cap)
        if floor >= cap.max_snr:
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
    """What sending drains from a battery beside the power on the air. By default nothing, Eq. (29).

    A power set gives the watts of every state that has no watts of its own here, in ``downlink`` or in the
    cell's ``idle_power_w``.
    """

    place: ClassVar[str] = "radio"

    power_set: str | None = None  # one of POWER_SETS
    amplifier_efficiency: Share = 1.0  # xi
    circuit_power_w: NonNegativeFloat = 0.0
    waiting: WaitingKind = "idle"  # at idle_power_w, or in states of the power set
    receive_bandwidth_hz: PositiveFloat = 100e6  # of the bandwidth part, which scales a set's reception

    @model_validator(mode="after")
    def _check_set(self) -> RadioConfig:
        if self.power_set is not None and self.power_set not in POWER_SETS:
            raise ValueError(
                f'there is no power set "{self.power_set}". {did_you_mean(self.power_set, POWER_SETS)}'
            )
        if self.power_set is None and self.waiting != "idle":
            raise ValueError(
                f'waiting = "{self.waiting}" is a state of a power set, and none is named. '
                f"Set power_set to {' or '.join(POWER_SETS)}, or leave waiting out"
            )
        return self

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
    num_receive_antennas: PositiveInt = 1  # of a device, combined by maximum ratio
    # The link curve of the way down, which then has an ergodic mean of its own; None: all as on the way up.
    rate: RateConfig | None = None

    @model_validator(mode="after")
    def _one_power(self) -> DownlinkConfig:
        if self.power_w is not None and self.power_dbm is not None:
            raise ValueError("power_w and power_dbm are both given. Keep one of them")
        if self.broadcast and self.power_w is None and self.power_dbm is None:
            raise ValueError(
                "a broadcast needs power_w or power_dbm, got neither. A street cell sends 40 dBm"
            )
        return self

    @model_validator(mode="after")
    def _own_antennas(self) -> DownlinkConfig:
        if self.num_receive_antennas > 1 and self.rate is None:
            raise ValueError(
                f"num_receive_antennas = {self.num_receive_antennas} needs [downlink.rate], got none. "
                "Without it the broadcast takes the uplink's gains"
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
    replaces: ClassVar[dict[str, tuple[str, ...]]] = {
        "radio.power_set": (
            "radio.amplifier_efficiency",
            "radio.circuit_power_w",
            "downlink.receive_power_w",
        ),
        "radio.receive_bandwidth_hz": ("downlink.receive_power_w",),
        "radio.waiting": ("idle_power_w",),
        "idle_power_w": ("radio.waiting",),
    }

    description: str = ""
    normalised: bool = False  # the paper's unitless numbers: SI sanity checks do not apply
    num_blocks: PositiveInt  # M: how many can upload at a time
    blocks_per_device: PositiveInt = 1  # k: each of the M is a group of k blocks
    bandwidth_hz: PositiveFloat  # B, of one block
    noise_psd_w_per_hz: PositiveFloat | None = None
    noise_psd_dbm_per_hz: Decibel | None = None
    noise_figure_db: Decibel = 0.0
    access: Literal["one-block", "shared-band", "blocks", "tdma"] = Field(
        "one-block",
        description="How devices share the blocks: one each; any share of the band; several whole blocks; or "
        "the whole band in turn. See docs/allocation-accesses.md.",
    )
    max_uploads: PositiveInt | None = Field(
        None, description="At most so many devices upload; None: as many as blocks, or all, allow."
    )
    work_conserving: bool = Field(
        False, description='Blocks that fall free go on to others; for access "one-block" and "blocks".'
    )
    redraw: Literal["static", "each-round"] = "static"
    channel: ChannelPart
    fleet: FleetConfig
    interference: InterferencePart = NoInterference()
    losses: LossConfig = LossConfig()
    rate: RateConfig = RateConfig()
    radio: RadioConfig = RadioConfig()
    downlink: DownlinkConfig = DownlinkConfig()
    idle_power_w: NonNegativeFloat = Field(0.0, description="Power of a waiting device; 0 as in the paper.")
    carbon_intensity_g_per_kwh: NonNegativeFloat | None = Field(
        None, description="Grams of CO2 that a kilowatt-hour is worth; with it tables have gCO2."
    )

    @model_validator(mode="wrap")
    @classmethod
    def _name_all_that_is_missing(cls, given: Any, handler: Callable[[Any], Any]) -> Any:
        """Return the cell; where keys are missing, noise, which has two names, is named with them."""
        try:
            return handler(given)
        except ValidationError as error:
            problems: list[Any] = error.errors(include_url=False)
            names = ("noise_psd_w_per_hz", "noise_psd_dbm_per_hz")
            has_noise = not isinstance(given, dict) or any(name in given for name in names)
            if has_noise or {problem["type"] for problem in problems} != {"missing"}:
                raise
            lost = InitErrorDetails(type="missing", loc=names[1:], input=given)
            raise ValidationError.from_exception_data(error.title, [*problems, lost]) from None

    @model_validator(mode="before")
    @classmethod
    def _fill_in_power_set(cls, given: Any) -> Any:
        """Return the table with the watts of the power set where it has none of its own."""
        radio = given.get("radio") if isinstance(given, dict) else None
        downlink = given.get("downlink", {}) if isinstance(given, dict) else None
        if not isinstance(radio, dict) or not isinstance(downlink, dict):
            return given
        power_set = POWER_SETS.get(str(radio.get("power_set")))
        bandwidth_hz = radio.get("receive_bandwidth_hz", 100e6)
        if power_set is None or not isinstance(bandwidth_hz, int | float) or not bandwidth_hz > 0:
            return given  # nothing to fill in, or refused below
        sending = power_set.sending
        watts = {
            "amplifier_efficiency": sending.amplifier_efficiency,
            "circuit_power_w": sending.circuit_power_w,
        }
        receiving = {"receive_power_w": power_set.receive_power_w(bandwidth_hz)}
        return {**given, "radio": {**watts, **radio}, "downlink": {**receiving, **downlink}}

    @model_validator(mode="after")
    def _check_access(self) -> CellConfig:
        if self.work_conserving and self.access not in ("one-block", "blocks"):
            raise ValueError(
                f'work_conserving needs access = "one-block" or "blocks", got "{self.access}". Only whole '
                "blocks fall free"
            )
        if self.losses.packet_error_waterfall is None:
            return self
        if self.access != "one-block":
            raise ValueError(
                f'access = "{self.access}" has no proof with losses.packet_error_waterfall. Leave it out, '
                "or use one-block"
            )
        if self.work_conserving:
            raise ValueError(
                "work_conserving and losses.packet_error_waterfall are both given. An upload on more blocks "
                "has another SNR, and is lost more often than planned; keep one of them"
            )
        return self

    @model_validator(mode="after")
    def _check_waiting(self) -> CellConfig:
        if self.radio.waiting != "idle" and self.idle_power_w > 0.0:
            raise ValueError(
                f'radio.waiting = "{self.radio.waiting}" and idle_power_w = {self.idle_power_w:g} are both '
                "given. Keep one of them"
            )
        return self

    @property
    def waiting(self) -> Waiting:
        """The states that a radio rests in; none where waiting costs ``idle_power_w``."""
        if self.radio.power_set is None:
            return NEVER_ASLEEP
        return POWER_SETS[self.radio.power_set].waiting(self.radio.waiting, self.radio.receive_bandwidth_hz)

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
