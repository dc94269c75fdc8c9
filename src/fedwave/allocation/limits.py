"""How fast a device may send on a block: power, energy and deadline as one cap on the signal-to-noise ratio.

Power limit and energy limit both bound the SNR from above (a faster upload takes more energy), the deadline
bounds it from below. So a pair (device, block) is feasible at a common SNR x exactly if floor <= x <= cap.
"""

from __future__ import annotations

import numpy as np

from fedwave.allocation.power import LARGEST_SNR, energy_factor, snr_of_delay, snr_of_energy_factor
from fedwave.allocation.problem import AllocationProblem
from fedwave.allocation.tolerance import RELAXED
from fedwave.units import BoolArray, FloatArray, IntArray
from fedwave.wireless.link import upload_delay_s, upload_energy_j

_ROUNDING = 1e-14  # an energy limit is undercut by this share, so that rounding cannot break it
_FAINT_SNR = 1e-5  # below, the energy hardly depends on the SNR, and its rounding hides the cap
_FAINT_ROUNDING = 4e-15  # so there we grant what a dozen roundings of the energy may add


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

    A pair that meets a limit at full power by the definitions, Eq. (25)-(29), counts as meeting it, and one
    that meets its limits within the tolerance counts as standing at the deadline, so rounding excludes nobody
    who is exactly at a limit. ``device`` and ``block`` broadcast.
    """
    device, block = np.broadcast_arrays(device, block)
    gain, power = problem.gain_of(device, block), problem.max_power_w[device]
    with np.errstate(over="ignore", under="ignore"):
        cap = np.minimum(power * gain / problem.block_noise_w[block], LARGEST_SNR)
    if problem.max_energy_j is None and problem.max_delay_s is None:
        return np.asarray(cap)
    power_cap = cap
    full_delay, full_energy = _at_full_power(problem, device, block)
    is_frugal = full_energy <= problem.energy_limit_of(device)
    if problem.max_energy_j is not None:
        cap = np.where(is_frugal, cap, np.minimum(cap, snr_of_energy_limit(problem, device, block)))
    if problem.max_delay_s is not None:
        floor = min(snr_floor(problem), LARGEST_SNR)
        is_quick = np.where(is_frugal, full_delay <= problem.max_delay_s * RELAXED, cap >= floor)
        is_quick |= _almost_meets(problem, device, block, power_cap)
        cap = np.where(is_quick, np.maximum(cap, floor), 0.0)
    elif problem.max_energy_j is not None:
        is_shut = (cap == 0) & (power_cap > 0)  # even the slowest rate takes too much, or only just
        if is_shut.any():
            least = snr_of_energy_limit(problem, device[is_shut], block[is_shut], share=RELAXED)
            cap[is_shut] = np.minimum(power_cap[is_shut], least)
    return np.asarray(np.where(np.isfinite(full_delay), cap, 0.0))


def meet_limits(
    problem: AllocationProblem, device: IntArray, block: IntArray, power_w: FloatArray
) -> FloatArray:
    """Return the powers, moved by a few rounding errors where the definitions would break a limit by one.

    Who can meet all limits exactly does; the others (see ``snr_cap``) meet them within the tolerance.
    """
    power = np.minimum(power_w, problem.max_power_w[device])
    if problem.max_delay_s is None and problem.max_energy_j is None:
        return power
    energy_limit = problem.energy_limit_of(device)
    was_late = np.zeros(device.shape, dtype=bool)
    for step in 2.0 ** np.arange(-52, -36):
        delay = delay_s(problem, device, block, power)
        is_late = np.zeros(device.shape, dtype=bool)
        if problem.max_delay_s is not None:
            is_late = (delay > problem.max_delay_s) & (power < problem.max_power_w[device])
        is_greedy = ~(is_late | was_late) & (upload_energy_j(power, delay) > energy_limit)
        if not (is_late.any() or is_greedy.any()):
            break
        power = np.where(is_late, np.minimum(power * (1 + step), problem.max_power_w[device]), power)
        power = np.where(is_greedy, power * (1 - step), power)
        was_late |= is_late
    if problem.max_energy_j is None:
        return power
    is_greedy = upload_energy_j(power, delay_s(problem, device, block, power)) > energy_limit * RELAXED
    frugal = watts_per_snr(problem, device, block) * snr_of_energy_limit(
        problem, device, block, share=RELAXED
    )
    return np.where(is_greedy, np.minimum(power, frugal), power)


def delay_s(problem: AllocationProblem, device: IntArray, block: IntArray, power_w: FloatArray) -> FloatArray:
    """Return how long each pair's upload takes at the given power, Eq. (28); infinite if nothing is sent."""
    rate = problem.rate_bps_of(device, block, power_w)
    with np.errstate(over="ignore"):
        return upload_delay_s(rate, model_bits=problem.model_bits)


def snr_of_energy_limit(
    problem: AllocationProblem, device: IntArray, block: IntArray, *, share: float = 1.0
) -> FloatArray:
    """Return the SNR at which each pair's upload takes ``share`` times its energy limit; 0 if all take more.

    Energies never fall as the SNR grows, so this is a cap. It is infinite in effect without a limit.
    """
    unit_energy = watts_per_snr(problem, device, block) * problem.nat_time_s
    limit = np.broadcast_to(problem.energy_limit_of(device) * share, unit_energy.shape)
    with np.errstate(over="ignore"):
        factor = np.divide(
            limit,
            unit_energy,
            out=np.zeros(unit_energy.shape),
            where=(unit_energy > 0) & np.isfinite(unit_energy),
        )
    factor = np.minimum(factor, LARGEST_SNR)
    snr = snr_of_energy_factor(factor) * (1.0 - _ROUNDING)
    is_faint = (snr < _FAINT_SNR) & (factor > 1.0 - _FAINT_ROUNDING)
    if is_faint.any():
        snr[is_faint] = snr_of_energy_factor(factor[is_faint] * (1.0 + _FAINT_ROUNDING))
    return snr


def _almost_meets(
    problem: AllocationProblem, device: IntArray, block: IntArray, power_cap: FloatArray
) -> BoolArray:
    """Return whether some SNR meets deadline and energy limit of each pair within the tolerance."""
    assert problem.max_delay_s is not None  # snr_cap
    floor = snr_of_delay(problem.max_delay_s * RELAXED, nat_time_s=problem.nat_time_s)
    if floor > LARGEST_SNR:
        return np.zeros(power_cap.shape, dtype=bool)
    with np.errstate(over="ignore"):
        energy = watts_per_snr(problem, device, block) * problem.nat_time_s * energy_factor(floor)
    return (power_cap >= floor) & (energy <= problem.energy_limit_of(device) * RELAXED)


def _at_full_power(
    problem: AllocationProblem, device: IntArray, block: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Return delay and energy of each pair at full power, infinite where that sends nothing."""
    power = problem.max_power_w[device]
    rate = problem.rate_bps_of(device, block, power)
    sends = rate > 0
    with np.errstate(over="ignore"):
        delay = np.where(
            sends, upload_delay_s(np.where(sends, rate, 1.0), model_bits=problem.model_bits), np.inf
        )
        energy = upload_energy_j(np.where(sends, power, 1.0), delay)
    return delay, energy
