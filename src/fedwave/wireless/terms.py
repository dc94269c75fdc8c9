"""The terms of a radio link: all that a planner and the world must agree on, as one value. Numpy alone."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from fedwave.wireless.channel_draw import ChannelDraw
from fedwave.wireless.delivery import UploadRisks
from fedwave.wireless.downlink import Downlink
from fedwave.wireless.link import IDEAL_RADIO, SHANNON
from fedwave.wireless.rate import RadioPower, RateModel

NO_RISKS = UploadRisks()


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

    @property
    def noise_w(self) -> float:
        """Thermal noise power in one block, B N0."""
        return self.bandwidth_hz * self.noise_psd_w_per_hz

    def on_all_blocks(self, channel: ChannelDraw) -> ChannelDraw:
        """Return the channel with an interference for each block; a single one stands for all of them."""
        if len(channel.interference_w) == 1 < self.num_blocks:
            return replace(channel, interference_w=np.repeat(channel.interference_w, self.num_blocks))
        return channel
