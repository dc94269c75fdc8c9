"""The report phase: the devices send in their contributions before uploads are planned. Needs numpy alone."""

from __future__ import annotations

import numpy as np

from fedwave.units import FloatArray, IntArray
from fedwave.wireless.channel_draw import ChannelDraw
from fedwave.wireless.link import uplink_rate_bps, upload_delay_s


def report_phase(
    max_power_w: FloatArray,
    channel: ChannelDraw,
    *,
    device_index: IntArray,
    report_bits: float,
    bandwidth_hz: float,
    noise_psd_w_per_hz: float,
) -> tuple[FloatArray, float]:
    """Return each device's time on air for its report, (n,), and how long the reports take together.

    ``max_power_w`` has an entry for every device of the cell, ``device_index`` names those that report. A
    report goes at full power over one block. The devices take turns in the order given, as many at a time as
    there are blocks; a turn lasts as long as its slowest report. Nobody waits for a device without a signal.
    """
    time_s = np.zeros(len(max_power_w))
    if report_bits == 0.0:  # the paper neglects reports
        return time_s, 0.0
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
        )
        is_heard = rate_bps > 0
        time_s[members[is_heard]] = upload_delay_s(rate_bps[is_heard], model_bits=report_bits)
        phase_s += float(time_s[members].max())
    return time_s, phase_s
