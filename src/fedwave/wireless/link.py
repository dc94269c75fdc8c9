"""What one device's computation and upload cost in seconds and joules, Eq. (23)-(29)."""

from __future__ import annotations

import numpy as np

from fedwave.units import FloatArray
from fedwave.wireless.rate import RadioPower, RateModel

SHANNON = RateModel()
IDEAL_RADIO = RadioPower()
_LN_2 = np.log(2.0)


def compute_energy_j(
    cpu_frequency_hz: FloatArray,
    *,
    workload_cycles: FloatArray,
    capacitance: FloatArray,
    static_power_w: FloatArray | float = 0.0,
    joules_per_cycle: FloatArray | float = 0.0,
) -> FloatArray:
    """Return the CPU energy of a round's local update, Eq. (23): (iota/2) tau c D nu^2.

    Past the paper, P_0 for as long as it computes and a constant for each cycle: w (iota/2 nu^2 + P_0 / nu +
    e_0), w = tau c D. Both default to 0, and then change no bit.
    """
    energy = 0.5 * capacitance * workload_cycles * cpu_frequency_hz**2
    if np.asarray(static_power_w).any():
        delay = compute_delay_s(cpu_frequency_hz, workload_cycles=workload_cycles)
        static = np.broadcast_to(np.asarray(static_power_w, dtype=np.float64), delay.shape)
        # Nothing times the endless delay of a frequency of 0 is nothing.
        energy = energy + np.multiply(static, delay, out=np.zeros(delay.shape), where=static > 0)
    if np.asarray(joules_per_cycle).any():
        energy = energy + joules_per_cycle * workload_cycles
    return energy


def compute_delay_s(cpu_frequency_hz: FloatArray, *, workload_cycles: FloatArray) -> FloatArray:
    """Return the time of a round's local update, Eq. (24): tau c D / nu. No work takes no time."""
    is_busy = np.asarray(workload_cycles) > 0
    delay = np.zeros(np.broadcast(workload_cycles, cpu_frequency_hz).shape)
    with np.errstate(divide="ignore"):  # work at frequency zero never ends
        np.divide(workload_cycles, cpu_frequency_hz, out=delay, where=is_busy)
    return delay


def uplink_snr(transmit_power_w: FloatArray, channel_gain: FloatArray, noise_w: FloatArray) -> FloatArray:
    """Return the signal-to-noise ratio of an upload, p h / (I + B N0) of Eq. (25)."""
    return transmit_power_w * channel_gain / noise_w


def uplink_rate_bps(
    transmit_power_w: FloatArray,
    channel_gain: FloatArray,
    *,
    interference_w: FloatArray,
    bandwidth_hz: float,
    noise_psd_w_per_hz: float,
    rate_model: RateModel = SHANNON,
) -> FloatArray:
    """Return the achievable uplink rate, Eq. (25): B log2(1 + p h / (I + B N0)), or a modem's share of it.

    ``log1p`` keeps the rate exact at the tiny signal-to-noise ratios where 1 + x rounds to 1.
    """
    snr = uplink_snr(transmit_power_w, channel_gain, interference_w + bandwidth_hz * noise_psd_w_per_hz)
    return rate_bps_at(snr, bandwidth_hz=bandwidth_hz, rate_model=rate_model)


def rate_bps_at(snr: FloatArray, *, bandwidth_hz: float, rate_model: RateModel = SHANNON) -> FloatArray:
    """Return the same from the signal-to-noise ratio."""
    if rate_model is not SHANNON and rate_model != SHANNON:
        return bandwidth_hz * rate_model.spectral_efficiency(snr)
    rate: FloatArray = bandwidth_hz * np.log1p(snr) / _LN_2
    return rate


def upload_delay_s(rate_bps: FloatArray, *, model_bits: float | FloatArray) -> FloatArray:
    """Return the time to upload the model, Eq. (28): S / r. A rate of zero never ends."""
    with np.errstate(divide="ignore"):
        return np.asarray(model_bits / np.asarray(rate_bps, dtype=np.float64))


def upload_energy_j(
    transmit_power_w: FloatArray, delay_s: FloatArray, *, radio: RadioPower = IDEAL_RADIO
) -> FloatArray:
    """Return the radio energy of the upload, Eq. (29): T p, or T (p / xi + P_circuit) of a real radio."""
    return radio.drain_w(transmit_power_w) * delay_s
