"""A radio cell: built once from config and seed, then asked for the channel of any round."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from fedwave.errors import ProblemError, require_type, shown
from fedwave.ram import require_memory
from fedwave.rng import Stream, generator
from fedwave.shown_facts import ShownFacts
from fedwave.units import FloatArray, db_to_linear, watt_to_dbm
from fedwave.wireless.channels import Channel
from fedwave.wireless.channels.placement import LargeScale
from fedwave.wireless.delivery import UploadRisks
from fedwave.wireless.ergodic import ergodic_share
from fedwave.wireless.fleet import Fleet
from fedwave.wireless.interference import Interference
from fedwave.wireless.modem_mean import modem_shares, planned_rate
from fedwave.wireless.rate import RadioPower, RateModel
from fedwave.wireless.sanity import unit_warnings
from fedwave.wireless.settings.config import CellConfig
from fedwave.wireless.settings.fleet import PAPER_CNN_OPERATIONS, draw_fleet
from fedwave.wireless.sleep import Waiting
from fedwave.wireless.terms import ChannelDraw, Downlink, RadioTerms

_CACHED_PAIRS = 8_192  # of devices and blocks, whose doubles and what is computed on the way fit a cache


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Cell(ShownFacts):
    """Everything about the cell that a run keeps: its devices, its noise, and how to draw a round.

    ``draw`` depends on the seed and the round alone, so a resumed run sees the channel it would have seen.
    """

    config: CellConfig
    seed: int
    fleet: Fleet
    channel: Channel
    interference: Interference
    num_blocks: int
    bandwidth_hz: float  # of what a device gets: blocks_per_device blocks
    noise_psd_w_per_hz: float  # the receiver's noise figure included

    @classmethod
    def build(
        cls,
        config: CellConfig,
        *,
        num_devices: int,
        seed: int,
        operations_per_sample: float = PAPER_CNN_OPERATIONS,
    ) -> Cell:
        """Return the cell with its fleet and places drawn; files are read and checked here.

        ``operations_per_sample`` turns ``fleet.cycles_per_operation`` into cycles: multiply-adds of a model.
        """
        require_type(config, CellConfig, name="config", fix="Make one with load_cell_config(preset or file).")
        if not isinstance(num_devices, int) or isinstance(num_devices, bool) or num_devices < 1:
            raise ProblemError(
                f"num_devices must be a whole number >= 1, got {shown(num_devices)}. A cell needs a device."
            )
        # A gain for each device and block, some arrays of that size while it is drawn, and the fleet.
        require_memory(
            8 * (num_devices * (config.num_blocks + 16) + 4 * config.num_blocks),
            what=f"a cell of {num_devices:,} devices and {config.num_blocks:,} blocks",
            fix="Use fewer of them.",
        )
        return cls(
            config=config,
            seed=seed,
            fleet=draw_fleet(
                config.fleet, num_devices=num_devices, seed=seed, operations_per_sample=operations_per_sample
            ),
            interference=config.interference.create("cell.interference", num_blocks=config.num_blocks),
            channel=config.channel.create(
                "cell.channel",
                num_devices=num_devices,
                num_blocks=config.num_blocks,
                bandwidth_hz=config.group_bandwidth_hz,
                seed=seed,
            ),
            num_blocks=config.num_blocks,
            bandwidth_hz=config.group_bandwidth_hz,
            noise_psd_w_per_hz=config.effective_noise_psd_w_per_hz,
        )

    @property
    def num_devices(self) -> int:
        """Number of devices n."""
        return self.fleet.num_devices

    @property
    def noise_w(self) -> float:
        """Thermal noise power in one block, B N0."""
        return self.bandwidth_hz * self.noise_psd_w_per_hz

    @property
    def large_scale(self) -> LargeScale | None:
        """The devices' places and what they cost; None where the channel has no geometry."""
        return self.channel.large_scale

    @property
    def position_m(self) -> FloatArray | None:
        """Positions (n, 2), the base station at the origin; None where the channel has no geometry."""
        return None if self.large_scale is None else self.large_scale.position_m

    @property
    def distance_m(self) -> FloatArray | None:
        """Ground distances (n,) to the base station; None where the channel has no geometry."""
        return None if self.large_scale is None else self.large_scale.distance_m

    @property
    def upload_risks(self) -> UploadRisks:
        """What can keep an upload in this cell from arriving; below the modem's own floor nothing arrives."""
        risks, floor = self.config.losses.risks, self.rate_model.min_snr
        return risks if floor == 0.0 else replace(risks, outage_snr=max(floor, risks.outage_snr or 0.0))

    @cached_property
    def rate_model(self) -> RateModel:
        """What a plan may count on that the modems make of an SINR."""
        rate, is_ergodic = self.config.rate, self.channel.ergodic_k_factor is not None
        return planned_rate(rate.model) if rate.per_moment and is_ergodic else rate.model

    @property
    def num_receive_antennas(self) -> int:
        """Of the base station; gains are sums over them."""
        return 1 if self.large_scale is None else self.large_scale.num_receive_antennas

    @property
    def radio_power(self) -> RadioPower:
        """What sending drains from a battery."""
        return self.config.radio.power

    @property
    def waiting(self) -> Waiting:
        """The states that a radio rests in between its phases; none where that costs ``idle_power_w``."""
        return self.config.waiting

    @property
    def downlink(self) -> Downlink | None:
        """How the global model comes down; None: at no cost."""
        settings = self.config.downlink
        if not settings.broadcast:
            return None
        bandwidth_hz = self.num_blocks * self.bandwidth_hz
        rise = db_to_linear(settings.noise_figure_db + settings.noise_rise_db)
        return Downlink(
            power_w=settings.linear_power_w,
            bandwidth_hz=bandwidth_hz,
            noise_w=bandwidth_hz * self.config.thermal_noise_psd_w_per_hz * rise,
            receive_power_w=settings.receive_power_w,
            rate=self.rate_model if settings.rate is None else settings.rate.model,
        )

    @cached_property
    def terms(self) -> RadioTerms:
        """The terms of an upload, for planners and worlds alike; reports are free unless somebody says so."""
        return RadioTerms(
            num_blocks=self.num_blocks,
            bandwidth_hz=self.bandwidth_hz,
            noise_psd_w_per_hz=self.noise_psd_w_per_hz,
            rate=self.rate_model,
            radio=self.radio_power,
            risks=self.upload_risks,
            downlink=self.downlink,
            access=self.config.access,
            max_uploads=self.config.max_uploads,
            work_conserving=self.config.work_conserving,
        )

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """Units that look wrong, places outside a model's range; none for normalised cells without units."""
        if self.config.normalised:
            return ()
        units = unit_warnings(
            self.fleet, bandwidth_hz=self.bandwidth_hz, noise_psd_w_per_hz=self.noise_psd_w_per_hz
        )
        return (*units, *self.channel.warnings)

    def _facts(self) -> dict[str, object]:
        """Return what is shown of it: sizes and what it is made of."""
        width, largest_w = self.bandwidth_hz, float(self.fleet.max_power_w.max())
        with_units = {
            "bandwidth of each": f"{width / 1e3:g} kHz",
            "noise in each": f"{watt_to_dbm(self.noise_w):.1f} dBm",
            "largest power": f"{watt_to_dbm(largest_w):.1f} dBm",
        }
        without = {"bandwidth of each": f"{width:g}", "noise in each": f"{self.noise_w:.3g}"}
        without["largest power"] = f"{largest_w:.3g}"
        return {
            "devices": len(self.fleet.max_power_w),
            "blocks": self.num_blocks,
            **(without if self.config.normalised else with_units),
            "access": self.config.access,
            "channel": type(self.channel).__name__,
            "interference": type(self.interference).__name__,
            "seed": self.seed,
        }

    def check_rounds(self, num_rounds: int) -> None:
        """Raise if the channel comes to its end before that many rounds, as a recording may."""
        if self.channel.has_own_rounds:
            self.draw(num_rounds - 1)

    def draw(self, round_index: int) -> ChannelDraw:
        """Return the channel of one round. A static cell repeats round 0; a recording keeps its rounds."""
        if self.config.redraw == "static" and not self.channel.has_own_rounds:
            return self._static_draw
        return self._draw(round_index)

    @cached_property
    def _static_draw(self) -> ChannelDraw:
        return self._draw(0)

    def _draw(self, round_index: int) -> ChannelDraw:
        drawn_round = 0 if self.config.redraw == "static" else round_index
        interference_w = self.interference.draw_w(
            num_blocks=self.num_blocks,
            noise_w=self.noise_w,
            rng=generator(self.seed, Stream.INTERFERENCE, drawn_round),
        )
        channel_gain = self.channel.gain(round_index, rng=generator(self.seed, Stream.CHANNEL, drawn_round))
        downlink_gain = self._downlink_gain(channel_gain)
        if self.channel.ergodic_k_factor is not None:
            channel_gain = self._ergodic_gain(channel_gain, interference_w, self.channel.ergodic_k_factor)
        for array in (channel_gain, interference_w, downlink_gain):
            if array is not None:
                array.flags.writeable = False
        return ChannelDraw(channel_gain, interference_w, downlink_gain)

    def _downlink_gain(self, channel_gain: FloatArray) -> FloatArray | None:
        """Return the gains (n,) of a broadcast; None: the uplink's, the mean over blocks.

        The base station's antennas share its power and form no beam, since all devices listen: the mean gain
        is that of one of them. A device adds up its own antennas. In an ergodic cell with a [downlink.rate]
        it is the gain without fading that gives the ergodic rate at the downlink's SNR.
        """
        settings, downlink = self.config.downlink, self.downlink
        if downlink is None or (settings.rate is None and self.num_receive_antennas == 1):
            return None
        gain = channel_gain if channel_gain.ndim == 1 else channel_gain.mean(axis=1)
        gain = gain * (settings.num_receive_antennas / self.num_receive_antennas)
        k_factor = self.channel.ergodic_k_factor
        if k_factor is None or settings.rate is None:
            return gain
        rate = settings.rate.model if settings.rate.per_moment else RateModel()
        shares = modem_shares(rate, settings.num_receive_antennas)
        return gain * shares.at_power(downlink.power_w * gain / downlink.noise_w, k_factor)

    def _ergodic_gain(
        self, mean_gain: FloatArray, interference_w: FloatArray, k_factor: FloatArray
    ) -> FloatArray:
        """Return the gains without fading that give the ergodic rate at full power, and less below.

        They are (n, M), or (n,) where blocks are alike.
        """
        full_power_w = self.fleet.max_power_w * mean_gain  # received
        rate, num_antennas = self.config.rate, self.num_receive_antennas
        if rate.per_moment or num_antennas > 1:
            shares = modem_shares(rate.model if rate.per_moment else RateModel(), num_antennas)
            noise_w = interference_w + self.noise_w
            if (noise_w == noise_w[0]).all():
                return mean_gain * shares.up_to_power(full_power_w / noise_w[0], k_factor)
            full_snr = full_power_w[:, np.newaxis] / noise_w
            return mean_gain[:, np.newaxis] * shares.up_to_power(full_snr, k_factor[:, np.newaxis])
        full_snr = full_power_w[:, np.newaxis] / (interference_w + self.noise_w)
        share = np.empty_like(full_snr)
        # Some devices at a time stay in the processor's cache: half the time, the same numbers.
        step = max(1, _CACHED_PAIRS // full_snr.shape[1])
        for first in range(0, len(full_snr), step):
            rows = slice(first, first + step)
            share[rows] = ergodic_share(full_snr[rows], k_factor[rows, np.newaxis])
        return mean_gain[:, np.newaxis] * share
