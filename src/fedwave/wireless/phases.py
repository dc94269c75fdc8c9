"""The phases of a round over a cell: broadcast, computing, reports, uploads. Needs numpy alone.

A planner calls them with what it is told, the world with what is true: the two may differ by their arguments,
and never by their arithmetic.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedwave.units import BoolArray, FloatArray, IntArray
from fedwave.wireless.fleet import Fleet
from fedwave.wireless.link import uplink_rate_bps, upload_delay_s
from fedwave.wireless.rate import RadioPower
from fedwave.wireless.terms import ChannelDraw, RadioTerms


def broadcast_delay_s(
    terms: RadioTerms, channel: ChannelDraw, *, listeners: IntArray, model_bits: float
) -> float:
    """Return how long the global model takes to come down to these devices; 0 if that is free."""
    if terms.downlink is None:
        return 0.0
    gain = channel.channel_gain if channel.downlink_gain is None else channel.downlink_gain
    return terms.downlink.broadcast_time_s(gain, listeners=listeners, model_bits=model_bits)


def workload_cycles(
    fleet: Fleet, *, num_samples: IntArray, num_local_steps: int, computes: BoolArray | None = None
) -> FloatArray:
    """Return tau c D of Eq. (23), (24), each device's work in a round; 0 for those that do not compute."""
    share = np.ones(fleet.num_devices) if computes is None else computes.astype(np.float64)
    return share * num_local_steps * fleet.cycles_per_sample * num_samples


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
    terms: RadioTerms, max_power_w: FloatArray, channel: ChannelDraw, *, device_index: IntArray
) -> ReportPhase:
    """Return when each device reports.

    ``max_power_w`` has an entry for every device of the cell, ``device_index`` names those that report. A
    report goes at full power over one block. The devices take turns in the order given, as many at a time as
    there are blocks; a turn lasts as long as its slowest report. Nobody waits for a device without a signal.
    """
    if terms.report_bits == 0.0:  # the paper neglects reports
        return ReportPhase.skipped(len(max_power_w))
    start_s, time_s = np.zeros((2, len(max_power_w)))
    num_blocks = len(channel.interference_w)
    phase_s = 0.0
    for start in range(0, len(device_index), num_blocks):
        members = device_index[start : start + num_blocks]
        rate_bps = _links(terms, channel, members, np.arange(len(members)), max_power_w[members])[-1]
        is_heard = rate_bps > 0
        start_s[members] = phase_s
        time_s[members[is_heard]] = upload_delay_s(rate_bps[is_heard], model_bits=terms.report_bits)
        phase_s += float(time_s[members].max())
    return ReportPhase(start_s, time_s, phase_s)


def longest_upload_s(
    power_w: FloatArray,
    *,
    radio: RadioPower,
    max_delay_s: FloatArray | float | None = None,
    max_energy_j: FloatArray | float | None = None,
) -> FloatArray:
    """Return when each upload is broken off: at its deadline, or with its last joule; infinite if never."""
    limit_s = np.array(np.broadcast_to(np.inf if max_delay_s is None else max_delay_s, np.shape(power_w)))
    if max_energy_j is None:
        return limit_s
    drain_w = np.asarray(radio.drain_w(power_w))
    lasts_s = np.full(np.shape(power_w), np.inf)
    np.divide(max_energy_j, drain_w, out=lasts_s, where=drain_w > 0)
    return np.asarray(np.minimum(limit_s, lasts_s))


@dataclass(frozen=True, eq=False)
class UploadPhase:
    """The links of some uploads, one entry for each, and how long each one lasts."""

    channel_gain: FloatArray  # h on the device's block
    interference_w: FloatArray  # I of that block
    sinr: FloatArray  # linear, at the power used
    rate_bps: FloatArray
    time_s: FloatArray


def upload_phase(
    terms: RadioTerms,
    channel: ChannelDraw,
    *,
    device_index: IntArray,
    block: IntArray,
    power_w: FloatArray,
    model_bits: float,
    width_hz: FloatArray | None = None,
) -> UploadPhase:
    """Return the uploads of these devices on their blocks at these powers, Eq. (25), (28).

    With ``width_hz`` each has so many hertz of a band whose blocks are alike, its power spread over them.
    """
    gain, interference_w, rate_bps = _links(terms, channel, device_index, block, power_w)
    sinr = power_w * gain / (interference_w + terms.noise_w)
    if width_hz is not None:
        sinr = sinr * (terms.bandwidth_hz / width_hz)
        rate_bps = width_hz * terms.rate.spectral_efficiency(sinr)
    time_s = upload_delay_s(rate_bps, model_bits=model_bits)
    time_s[sinr < terms.rate.min_snr] = 0.0  # no link at all: the server grants no slot, nothing is sent
    return UploadPhase(gain, interference_w, sinr, rate_bps, time_s)


def _links(
    terms: RadioTerms, channel: ChannelDraw, device_index: IntArray, block: IntArray, power_w: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return gain, interference and rate of each device on its block, Eq. (25)."""
    gain = channel.channel_gain
    gain = gain[device_index, block] if gain.ndim == 2 else gain[device_index]
    interference_w = channel.interference_w[block]
    rate_bps = uplink_rate_bps(
        power_w,
        gain,
        interference_w=interference_w,
        bandwidth_hz=terms.bandwidth_hz,
        noise_psd_w_per_hz=terms.noise_psd_w_per_hz,
        rate_model=terms.rate,
    )
    return gain, interference_w, rate_bps
