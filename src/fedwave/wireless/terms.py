"""The terms of a radio link, all that a planner and the world must agree on, and the channel of one round.

Needs numpy alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from fedwave.units import FloatArray, IntArray, real_array
from fedwave.wireless.delivery import UploadRisks
from fedwave.wireless.link import IDEAL_RADIO, SHANNON
from fedwave.wireless.rate import RadioPower, RateModel

NO_RISKS = UploadRisks()


@dataclass(frozen=True, eq=False)
class ChannelDraw:
    """The radio channel of one round: measured, read or drawn. Those that a cell draws are read-only."""

    channel_gain: FloatArray  # h: (n,), the same on all blocks, or (n, M)
    interference_w: FloatArray  # I: (M,)
    downlink_gain: FloatArray | None = None  # (n,), of a broadcast over all blocks; None: the mean of h

    def __post_init__(self) -> None:
        for name in ("channel_gain", "interference_w", "downlink_gain"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, real_array(getattr(self, name), name))


@dataclass(frozen=True, kw_only=True)
class Downlink:
    """A broadcast over all blocks of the cell, as fast as the worst listener can follow."""

    power_w: float  # of the base station, over the whole bandwidth
    bandwidth_hz: float  # all blocks together
    noise_w: float  # at a device, over the whole bandwidth: its noise figure and other cells included
    receive_power_w: float = 0.0  # what listening drains from a battery
    rate: RateModel

    def rate_bps(self, mean_gain: FloatArray) -> FloatArray:
        """Return the rate that each device could follow, (n,)."""
        snr = self.power_w * mean_gain / self.noise_w
        return self.bandwidth_hz * self.rate.spectral_efficiency(snr)

    def broadcast_time_s(self, channel_gain: FloatArray, *, listeners: IntArray, model_bits: float) -> float:
        """Return how long S takes at the worst listener's rate.

        ``channel_gain`` is (n,) or (n, M): a broadcast uses all blocks, so a device's mean counts. The sender
        does not wait for a device that cannot be reached at all.
        """
        mean_gain = channel_gain if channel_gain.ndim == 1 else channel_gain.mean(axis=1)
        rate_bps = self.rate_bps(mean_gain[listeners])
        rate_bps = rate_bps[rate_bps > 0]
        return float(model_bits / np.min(rate_bps)) if rate_bps.size else 0.0


@dataclass(frozen=True, kw_only=True)
class RadioTerms:
    """What an upload meets besides its channel. By their defaults, the terms are those of the paper."""

    num_blocks: int  # M
    bandwidth_hz: float  # B of one block
    noise_psd_w_per_hz: float  # N0
    rate: RateModel = SHANNON  # what the modem makes of an SNR
    radio: RadioPower = IDEAL_RADIO  # what sending drains
    risks: UploadRisks = NO_RISKS  # what may keep an upload from arriving, and a planner's margin
    downlink: Downlink | None = None  # how the global model comes down; None: at no cost
    report_bits: float = 0.0  # of a contribution report, which the paper neglects
    access: str = "one-block"  # how devices share the blocks: docs/allocation-accesses.md
    max_uploads: int | None = None  # at most so many devices upload
    work_conserving: bool = False  # blocks that fall free go on to others

    @property
    def noise_w(self) -> float:
        """Thermal noise power in one block, B N0."""
        return self.bandwidth_hz * self.noise_psd_w_per_hz

    def on_all_blocks(self, channel: ChannelDraw) -> ChannelDraw:
        """Return the channel with an interference for each block; a single one stands for all of them."""
        if len(channel.interference_w) == 1 < self.num_blocks:
            return replace(channel, interference_w=np.repeat(channel.interference_w, self.num_blocks))
        return channel
