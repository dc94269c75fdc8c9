"""The way down: the base station sends the global model to everybody at once. Needs numpy alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedwave.units import FloatArray, IntArray
from fedwave.wireless.rate import RateModel


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
