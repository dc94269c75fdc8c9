"""How fast a device may send on a block: power, energy and deadline as one cap on the signal-to-noise ratio.

Power limit and energy limit both bound the SNR from above (a faster upload takes more energy), the deadline
bounds it from below. So a pair (device, block) is feasible at a common SNR x exactly if floor <= x <= cap.
"""

from __future__ import annotations

import numpy as np

from fedwave.allocation.power import LARGEST_SNR, snr_of_delay, snr_of_energy_factor
from fedwave.allocation.problem import AllocationProblem
from fedwave.units import FloatArray, IntArray
from fedwave.wireless.link import upload_delay_s, upload_energy_j

_ROUNDING = 1e-14  # an energy limit is undercut by this share, so that rounding cannot break it


def snr_floor(problem: AllocationProblem) -> float:
    """Return the SNR that just meets the deadline, from Eq. (41); 0 without a deadline."""
    if problem.max_delay_s is None:
        return 0.0
    return snr_of_delay(problem.max_delay_s, nat_time_s=problem.nat_time_s)


def watts_per_snr(problem: AllocationProblem, device: IntArray, block: IntArray) -> FloatArray:
    """Return (I_m + B N0) / h of each pair, the "(SNR)" of Lemma 6; infinite where the gain is 0."""
    gain = problem.gain_of(device, block)
    noise = np.broadcast_to(problem.block_noise_w[block], gain.shape)
    with np.errstate(over="ignore"):  # a vanishing gain takes infinite power
        return np.asarray(np.divide(noise, gain, out=np.full(gain.shape, np.inf), where=gain > 0))


def snr_cap(problem: AllocationProblem, device: IntArray, block: IntArray) -> FloatArray:
    """Return the largest SNR each pair may use under power, energy and deadline; 0 if it can never upload.

    A pair that meets a limit at full power by the definitions, Eq. (25)-(29), counts as meeting it, so
    rounding in the inverse formulas excludes nobody who is exactly at the limit. ``device`` and ``block``
    broadcast.
    """
    device, block = np.broadcast_arrays(device, block)
    gain, power = problem.gain_of(device, block), problem.max_power_w[device]
    with np.errstate(over="ignore", under="ignore"):
        cap = np.minimum(power * gain / problem.block_noise_w[block], LARGEST_SNR)
    if problem.max_energy_j is None and problem.max_delay_s is None:
        return np.asarray(cap)
    rate = problem.rate_bps_of(device, block, power)
    sends = rate > 0
    with np.errstate(over="ignore"):
        full_delay = np.where(
            sends, upload_delay_s(np.where(sends, rate, 1.0), model_bits=problem.model_bits), np.inf
        )
        full_energy = upload_energy_j(np.where(sends, power, 1.0), full_delay)
    is_frugal = full_energy <= problem.energy_limit_of(device)
    if problem.max_energy_j is not None:
        cap = np.where(is_frugal, cap, np.minimum(cap, _snr_of_energy_limit(problem, device, block)))
    if problem.max_delay_s is not None:
        floor = snr_floor(problem)
        is_quick = np.where(is_frugal, full_delay <= problem.max_delay_s, cap >= floor)
        cap = np.where(is_quick, np.maximum(cap, min(floor, LARGEST_SNR)), 0.0)
    return np.asarray(np.where(sends, cap, 0.0))


def meet_limits_exactly(
    problem: AllocationProblem, device: IntArray, block: IntArray, power_w: FloatArray
) -> FloatArray:
    """Return the powers, moved by a few rounding errors where the definitions would break a limit by one."""
    power = np.minimum(power_w, problem.max_power_w[device])
    if problem.max_delay_s is None and problem.max_energy_j is None:
        return power
    energy_limit = problem.energy_limit_of(device)
    for step in 2.0 ** np.arange(-52, -36):
        delay = _delay_s(problem, device, block, power)
        is_late = np.zeros(device.shape, dtype=bool)
        if problem.max_delay_s is not None:
            is_late = (delay > problem.max_delay_s) & (power < problem.max_power_w[device])
        is_greedy = ~is_late & (upload_energy_j(power, delay) > energy_limit)
        if not (is_late.any() or is_greedy.any()):
            break
        power = np.where(is_late, np.minimum(power * (1 + step), problem.max_power_w[device]), power)
        power = np.where(is_greedy, power * (1 - step), power)
    return power


def why_no_upload(problem: AllocationProblem, device: int, block: IntArray) -> str:
    """Return why the device cannot upload on any of the blocks: power, gain, deadline or energy."""
    if problem.max_power_w[device] == 0:
        return f"device {device} cannot upload: its max_power_w is 0"
    pairs = np.full(block.shape, device, dtype=np.int64)
    gain = problem.gain_of(pairs, block)
    if gain.max(initial=0.0) <= 0:
        return f"device {device} cannot upload: its channel_gain is 0"
    power = problem.max_power_w[pairs]
    delay = _delay_s(problem, pairs, block, power)
    if problem.max_delay_s is not None and delay.min() > problem.max_delay_s:
        return (
            f"device {device} cannot finish by {problem.max_delay_s:g} s even at full power "
            f"(it needs {delay.min():.4g} s)"
        )
    limit = float(problem.energy_limit_of(pairs)[0])
    least = float((watts_per_snr(problem, pairs, block) * problem.nat_time_s).min())
    if least >= limit:
        return (
            f"device {device} cannot upload within {limit:g} J even at the slowest rate "
            f"(it needs more than {least:.4g} J)"
        )
    return (
        f"device {device} cannot finish by {problem.max_delay_s or np.inf:g} s with {limit:g} J "
        "(fast enough takes too much energy)"
    )


def _delay_s(
    problem: AllocationProblem, device: IntArray, block: IntArray, power_w: FloatArray
) -> FloatArray:
    rate = problem.rate_bps_of(device, block, power_w)
    with np.errstate(over="ignore"):
        return upload_delay_s(rate, model_bits=problem.model_bits)


def _snr_of_energy_limit(problem: AllocationProblem, device: IntArray, block: IntArray) -> FloatArray:
    unit_energy = watts_per_snr(problem, device, block) * problem.nat_time_s
    limit = np.broadcast_to(problem.energy_limit_of(device), unit_energy.shape)
    with np.errstate(over="ignore"):
        factor = np.divide(limit, unit_energy, out=np.zeros(unit_energy.shape), where=unit_energy > 0)
    return snr_of_energy_factor(np.minimum(factor, LARGEST_SNR)) * (1.0 - _ROUNDING)
