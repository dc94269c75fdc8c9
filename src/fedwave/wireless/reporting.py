"""The report phase: the devices send in their contributions before uploads are planned. Needs numpy alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedwave.units import FloatArray, IntArray
from fedwave.wireless.channel_draw import ChannelDraw
from fedwave.wireless.link import SHANNON, uplink_rate_bps, upload_delay_s
from fedwave.wireless.rate import RateModel


@dataclass(frozen=True, eq=False)
class ReportPhase:
    """When each device of the cell is on the air with its report, counted from the phase's beginning."""

    start_s: FloatArray  # (n,); 0 for those that do not report
    time_s: FloatArray  # (n,); 0 for those that do not report
    duration_s: float

    @classmethod
    def skipped(cls, num_devices: int) -> ReportPhase:
        """Return the phase in which nobody reports."""
        return cls(np.zeros(num_devices), np.zeros(num_devices), 0.0)

    def time_until_s(self, end_s: float) -> FloatArray:
        """Return how long each device is on the air if the phase is cut off at ``end_s``."""
        return np.clip(end_s - self.start_s, 0.0, self.time_s)


def report_phase(
    max_power_w: FloatArray,
    channel: ChannelDraw,
    *,
    device_index: IntArray,
    report_bits: float,
    bandwidth_hz: float,
    noise_psd_w_per_hz: float,
    rate_model: RateModel = SHANNON,
) -> tuple[FloatArray, float]:
    """Return each device's time on air for its report, (n,), and how long the reports take together."""
    phase = report_turns(
        max_power_w,
        channel,
        device_index=device_index,
        report_bits=report_bits,
        bandwidth_hz=bandwidth_hz,
        noise_psd_w_per_hz=noise_psd_w_per_hz,
        rate_model=rate_model,
    )
    return phase.time_s, phase.duration_s


def report_turns(
    max_power_w: FloatArray,
    channel: ChannelDraw,
    *,
    device_index: IntArray,
    report_bits: float,
    bandwidth_hz: float,
    noise_psd_w_per_hz: float,
    rate_model: RateModel = SHANNON,
) -> ReportPhase:
    """Return when each device reports.

    ``max_power_w`` has an entry for every device of the cell, ``device_index`` names those that report. A
    report goes at full power over one block. The devices take turns in the order given, as many at a time as
    there are blocks; a turn lasts as long as its slowest report. Nobody waits for a device without a signal.
    """
    if report_bits == 0.0:  # the paper neglects reports
        return ReportPhase.skipped(len(max_power_w))
    start_s, time_s = np.zeros((2, len(max_power_w)))
    num_blocks = len(channel.interference_w)
    gain = channel.channel_gain
    phase_s = 0.0
    for start in range(0, len(device_index), num_blocks):
        members = device_index[start : start + num_blocks]
        block = np.arange(len(members))
        rate_bps = uplink_rate_bps(
            max_power_w[members],
            gain[members, block] if gain.ndim == 2 else gain[members],
            interference_w=channel.interference_w[block],
            bandwidth_hz=bandwidth_hz,
            noise_psd_w_per_hz=noise_psd_w_per_hz,
            rate_model=rate_model,
        )
        is_heard = rate_bps > 0
        start_s[members] = phase_s
        time_s[members[is_heard]] = upload_delay_s(rate_bps[is_heard], model_bits=report_bits)
        phase_s += float(time_s[members].max())
    return ReportPhase(start_s, time_s, phase_s)
