"""How fast a device may send on a block: power, energy, deadlines and modem as a range of SNRs.

Power limit and energy limit both bound the SNR from above (a faster upload takes more energy), deadlines and
the decoder's threshold bound it from below. So a pair (device, block) is feasible at a common SNR x exactly
if floor <= x <= cap. The rate's own cap bounds x as well: more power buys no speed.
"""

from __future__ import annotations

import math

import numpy as np

from fedwave.allocation.problem import AllocationProblem
from fedwave.allocation.tolerance import RELAXED
from fedwave.allocation.uploads.power import LARGEST_SNR, optimal_snrs, snr_of_delay, snr_of_energy_factor
from fedwave.units import BoolArray, FloatArray, IntArray
from fedwave.wireless.link import upload_delay_s
from fedwave.wireless.rate import RateModel

_ROUNDING = 1e-14  # an energy limit is undercut by this share, so that rounding cannot break it
_FAINT_SNR = 1e-5  # below, the energy hardly depends on the SNR, and its rounding hides the cap
_FAINT_ROUNDING = 4e-15  # so there we grant what a dozen roundings of the energy may add


def upload_deadline_s(problem: AllocationProblem, *, share: float = 1.0) -> float:
    """Return the longest upload that ``share`` times the deadlines allow, with all CPUs at full frequency.

    Infinite without a deadline; 0 or less where computing alone takes the whole round. Where devices have
    deadlines of their own, the latest counts.
    """
    deadline = math.inf
    if problem.longest_delay_s is not None:
        deadline = problem.longest_delay_s * share
    if problem.max_round_delay_s is not None:
        left = problem.max_round_delay_s * share - problem.fixed_delay_s - problem.fastest_compute_s
        deadline = min(deadline, left)
    return deadline


def own_deadline_s(problem: AllocationProblem, device: IntArray, *, share: float = 1.0) -> FloatArray | float:
    """Return the same for each of these devices, where they have deadlines of their own."""
    if not problem.has_own_deadlines:
        return upload_deadline_s(problem, share=share)
    round_s = upload_deadline_s(problem, share=share)
    return np.asarray(np.minimum(np.asarray(problem.deadline_of(device)) * share, round_s))


def snr_floor(problem: AllocationProblem) -> float:
    """Return the least SNR that meets the deadlines, Eq. (41), and that modem and decoder can use; 0: none.

    A decoder's threshold above the rate's cap asks for power, not for speed: see ``snr_caps``.
    """
    max_snr = problem.rate.max_snr
    threshold = max(problem.rate.min_snr, min(problem.min_snr, max_snr))
    floor = _snr_by(upload_deadline_s(problem), problem)
    if floor > max_snr and _relaxed_floor(problem) <= max_snr * RELAXED:
        floor = max_snr  # a deadline that the capped rate only just meets
    return max(floor, threshold)


def own_snr_floor(problem: AllocationProblem, device: IntArray) -> FloatArray | float:
    """Return the same for each of these devices: the least SNR of its own, whatever the common one is.

    The common SNR may be less than that of a device with an earlier deadline, see faster_uploads.py.
    """
    if not problem.has_own_deadlines:
        return snr_floor(problem)
    everybody = np.arange(problem.num_devices)
    max_snr = problem.rate.max_snr
    floor = _snrs_by(own_deadline_s(problem, everybody), problem)
    relaxed = _snrs_by(own_deadline_s(problem, everybody, share=RELAXED), problem)
    floor = np.where((floor > max_snr) & (relaxed <= max_snr * RELAXED), max_snr, floor)
    threshold = max(problem.rate.min_snr, min(problem.min_snr, max_snr))
    return np.asarray(np.maximum(floor, threshold)[device])


def relaxed_snr_floor(problem: AllocationProblem) -> float:
    """Return the least SNR with which a pair counts as standing at the floor, see ``snr_cap``."""
    least = max(_relaxed_floor(problem), problem.rate.min_snr, problem.min_snr / RELAXED)
    return min(least, snr_floor(problem))


def watts_per_snr(problem: AllocationProblem, device: IntArray, block: IntArray) -> FloatArray:
    """Return (I_m + B N0) / h of each pair, the "(SNR)" of Lemma 6; infinite where the gain is 0."""
    gain, noise = problem.gain_of(device, block), problem.block_noise_w[block]
    with np.errstate(over="ignore", divide="ignore"):  # a vanishing gain takes infinite power
        return np.asarray(noise / (gain + 0.0))  # minus zero is zero, too


def snr_cap(problem: AllocationProblem, device: IntArray, block: IntArray) -> FloatArray:
    """Return the largest common SNR each pair can keep up with; 0 if it can never upload.

    A pair that meets a limit at full power by the definitions, Eq. (25)-(29), counts as meeting it, and one
    that meets its limits within the tolerance counts as standing at the floor, so rounding excludes nobody
    who is exactly at a limit. ``device`` and ``block`` broadcast.
    """
    return snr_caps(problem, device, block)[0]


def snr_caps(problem: AllocationProblem, device: IntArray, block: IntArray) -> tuple[FloatArray, FloatArray]:
    """Return the largest common SNR of each pair, and the largest that it may use itself.

    They differ only past the SNR at which the rate reaches its cap: more power then sends no faster, but
    arrives more surely.
    """
    power_cap = np.asarray(
        np.minimum(problem.snr_of(device, block, problem.max_power_w[device]), LARGEST_SNR)
    )
    floor = own_snr_floor(problem, device)
    has_floor = bool(np.any(floor))
    max_snr = min(problem.rate.max_snr, LARGEST_SNR)
    if problem.max_energy_j is None and not has_floor and max_snr == LARGEST_SNR:
        return power_cap, power_cap
    device, block = np.broadcast_arrays(device, block)
    top = power_cap if _may_pass_rate_cap(problem) else np.minimum(power_cap, max_snr)
    delay, energy = _at_top(problem, device, block, top, power_cap)
    is_frugal = energy <= problem.energy_limit_of(device)
    own = top
    if problem.max_energy_j is not None:
        own = np.where(is_frugal, top, np.minimum(top, snr_of_energy_limit(problem, device, block)))
        if problem.radio.has_circuit:  # who cannot reach the cheapest rate saves nothing by less
            own = np.where(is_frugal | (top >= thrifty_snr(problem, device, block)), own, 0.0)
    cap = np.minimum(own, max_snr)
    if has_floor:
        is_quick = delay <= own_deadline_s(problem, device, share=RELAXED)
        is_heard = top * RELAXED >= problem.min_snr
        is_able = np.where(is_frugal, is_quick & is_heard, (cap >= floor) & (own >= problem.min_snr))
        is_close = ~is_able & (top > 0)
        if is_close.any():
            is_able[is_close] = _almost_meets(problem, device[is_close], block[is_close], top[is_close])
        cap = np.where(is_able, np.maximum(cap, np.minimum(floor, max_snr)), 0.0)
        own = np.maximum(own, problem.min_snr)
    if problem.max_energy_j is not None and not np.all(floor):
        # Even the cheapest rate takes too much, or only just.
        is_shut = (cap == 0) & (top > 0) & (np.asarray(floor) == 0.0)
        if problem.radio.has_circuit:
            is_shut[is_shut] = _almost_meets(problem, device[is_shut], block[is_shut], top[is_shut])
        if is_shut.any():
            least = snr_of_energy_limit(problem, device[is_shut], block[is_shut], share=RELAXED)
            cap[is_shut] = np.minimum(top[is_shut], least)
    cap = np.asarray(np.where(np.isfinite(delay), cap, 0.0))
    return cap, np.maximum(own, cap)


def largest_snr(problem: AllocationProblem, device: IntArray, gain_to_noise: FloatArray) -> float:
    """Return a bound on the SNR cap of these devices, each on a block with this gain over noise; 0: none."""
    with np.errstate(over="ignore", under="ignore"):
        cap = np.minimum(problem.max_power_w[device] * gain_to_noise, LARGEST_SNR)
    if problem.max_energy_j is not None:
        with np.errstate(over="ignore", divide="ignore"):
            unit_energy = problem.nat_delay_s / (problem.radio.amplifier_efficiency * gain_to_noise)
            factor = problem.energy_limit_of(device) / unit_energy
        cap = np.minimum(cap, snr_of_energy_factor(factor * RELAXED))
    highest = min(float(cap.max(initial=0.0)), problem.rate.max_snr) * RELAXED
    return max(highest, snr_floor(problem)) if highest >= relaxed_snr_floor(problem) else 0.0


def thrifty_snr(problem: AllocationProblem, device: IntArray, block: IntArray) -> FloatArray:
    """Return the SNR at which each pair's upload takes the least energy; 0 without circuit power.

    Slower, the circuit would run longer than the amplifier saves: (1 + x) ln(1 + x) - x = xi P_circuit / a.
    Past the rate's cap more power saves no time.
    """
    watts = watts_per_snr(problem, device, block)
    if not problem.radio.has_circuit:
        return np.zeros(watts.shape)
    thrifty = optimal_snrs(problem.radio.amplifier_efficiency * problem.circuit_power_of(device) / watts)
    return np.minimum(thrifty, problem.rate.max_snr)


def meet_limits(
    problem: AllocationProblem, device: IntArray, block: IntArray, power_w: FloatArray
) -> FloatArray:
    """Return the powers, moved by a few rounding errors where the definitions would break a limit by one.

    Who can meet all limits exactly does; the others (see ``snr_cap``) meet them within the tolerance.
    """
    most = problem.max_power_w[device]
    power = np.minimum(power_w, most)
    deadline = own_deadline_s(problem, device)
    is_timed = bool(np.any(deadline < math.inf))
    threshold = max(problem.min_snr, problem.rate.min_snr)
    if not is_timed and threshold == 0.0 and problem.max_energy_j is None:
        return power
    energy_limit = problem.energy_limit_of(device)
    was_weak = np.zeros(device.shape, dtype=bool)
    for step in 2.0 ** np.arange(-52, -36):
        delay = delay_s(problem, device, block, power)
        is_weak = np.zeros(device.shape, dtype=bool)
        if is_timed:
            is_weak = delay > deadline
        if threshold > 0.0:
            is_weak = is_weak | (problem.snr_of(device, block, power) < threshold)
        is_weak = is_weak & (power < most)
        is_greedy = ~(is_weak | was_weak) & (problem.upload_energy_j(device, power, delay) > energy_limit)
        if not (is_weak.any() or is_greedy.any()):
            break
        power = np.where(is_weak, np.minimum(power * (1 + step), most), power)
        power = np.where(is_greedy, power * (1 - step), power)
        was_weak |= is_weak
    if problem.max_energy_j is None:
        return power
    energy = problem.upload_energy_j(device, power, delay_s(problem, device, block, power))
    frugal_snr = snr_of_energy_limit(problem, device, block, share=RELAXED)
    is_greedy = (energy > energy_limit * RELAXED) & (frugal_snr > 0)
    frugal = watts_per_snr(problem, device, block) * frugal_snr
    return np.where(is_greedy, np.minimum(power, frugal), power)


def delay_s(problem: AllocationProblem, device: IntArray, block: IntArray, power_w: FloatArray) -> FloatArray:
    """Return how long each pair's upload takes at the given power, Eq. (28); infinite if nothing is sent."""
    rate = problem.rate_bps_of(device, block, power_w)
    with np.errstate(over="ignore"):
        return upload_delay_s(rate, model_bits=problem.model_bits)


def energy_at(
    problem: AllocationProblem, device: IntArray, watts: FloatArray, snr: FloatArray | float
) -> FloatArray:
    """Return what an upload at the given SNR drains, s (a x / xi + P_circuit) / ln(1 + x), a = ``watts``."""
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        nats = np.log1p(np.minimum(snr, min(problem.rate.max_snr, LARGEST_SNR)))
        drain = watts * snr / problem.radio.amplifier_efficiency + problem.circuit_power_of(device)
        return np.asarray(problem.nat_delay_s * drain / nats)


def snr_of_energy_limit(
    problem: AllocationProblem, device: IntArray, block: IntArray, *, share: float = 1.0
) -> FloatArray:
    """Return the largest SNR that keeps each pair to ``share`` times its energy limit; 0 if none does.

    It is huge where there is no limit.
    """
    watts = watts_per_snr(problem, device, block)
    unit_energy = watts * problem.nat_delay_s
    if problem.radio.amplifier_efficiency != 1.0:
        unit_energy = unit_energy / problem.radio.amplifier_efficiency
    limit = np.broadcast_to(problem.energy_limit_of(device) * share, unit_energy.shape)
    with np.errstate(over="ignore"):
        factor = np.divide(
            limit,
            unit_energy,
            out=np.zeros(unit_energy.shape),
            where=(unit_energy > 0) & np.isfinite(unit_energy),
        )
    factor = np.minimum(factor, LARGEST_SNR)
    if problem.radio.has_circuit:
        with np.errstate(over="ignore"):
            circuit = problem.radio.amplifier_efficiency * problem.circuit_power_of(device) / watts
        snr = _snr_of_drain(factor, circuit)
    else:
        snr = snr_of_energy_factor(factor) * (1.0 - _ROUNDING)
        is_faint = (snr < _FAINT_SNR) & (factor > 1.0 - _FAINT_ROUNDING)
        if is_faint.any():
            snr[is_faint] = snr_of_energy_factor(factor[is_faint] * (1.0 + _FAINT_ROUNDING))
    max_snr = problem.rate.max_snr
    if max_snr < LARGEST_SNR:  # past it the delay stays, and the energy grows with the power alone
        radio = problem.radio
        drain = limit * math.log1p(max_snr) / problem.nat_delay_s - problem.circuit_power_of(device)
        with np.errstate(over="ignore", invalid="ignore"):
            past = np.minimum(radio.amplifier_efficiency * drain / watts, LARGEST_SNR)
        past = np.where(past >= max_snr * (1.0 - _ROUNDING), np.maximum(past, max_snr), 0.0)
        snr = np.where(snr >= max_snr, past * (1.0 - _ROUNDING), snr)
    return snr


def least_affordable_snr(problem: AllocationProblem, device: IntArray, block: IntArray) -> FloatArray:
    """Return the least SNR that keeps to each pair's energy limit; 0 without circuit power.

    Slower uploads keep the circuit on for too long. Newton's method climbs to the smaller root of the convex
    e^v - 1 + c - r v from v = 0.
    """
    if not problem.radio.has_circuit or problem.max_energy_j is None:
        return np.zeros(device.shape)
    xi = problem.radio.amplifier_efficiency
    watts = watts_per_snr(problem, device, block)
    with np.errstate(over="ignore", invalid="ignore"):
        r = np.minimum(problem.energy_limit_of(device) * xi / (watts * problem.nat_delay_s), LARGEST_SNR)
        c = np.minimum(xi * problem.circuit_power_of(device) / watts, LARGEST_SNR)
    v, bottom = np.zeros(r.shape), np.log(np.maximum(r, 1.0))  # past it the function rises again
    for _ in range(60):
        slope = np.exp(v) - r
        is_open = slope < 0
        step = np.divide(np.expm1(v) + c - r * v, -slope, out=np.zeros(v.shape), where=is_open)
        step = np.maximum(step, 0.0)
        v = np.minimum(v + step, bottom)
        if (step <= 1e-15 * v).all():
            break
    return np.minimum(np.expm1(v), thrifty_snr(problem, device, block))


def _may_pass_rate_cap(problem: AllocationProblem) -> bool:
    """Return whether an SNR at which the rate stays at its cap may be worth its power."""
    return problem.waterfall > 0.0 or problem.min_snr > problem.rate.max_snr


def _snr_by(deadline_s: float, problem: AllocationProblem) -> float:
    if deadline_s == math.inf:
        return 0.0
    return snr_of_delay(deadline_s, nat_delay_s=problem.nat_delay_s) if deadline_s > 0.0 else math.inf


def _snrs_by(deadline_s: FloatArray | float, problem: AllocationProblem) -> FloatArray:
    """Return the SNR that ends by each deadline: 0 without one, infinite where no time is left."""
    with np.errstate(divide="ignore", over="ignore"):
        snr = np.expm1(np.minimum(problem.nat_delay_s / np.asarray(deadline_s), 700.0))
    return np.where((np.asarray(deadline_s) > 0.0) & (snr <= LARGEST_SNR), snr, np.inf)


def _relaxed_floor(problem: AllocationProblem) -> float:
    return _snr_by(upload_deadline_s(problem, share=RELAXED), problem)


def _snr_of_drain(factor: FloatArray, circuit: FloatArray) -> FloatArray:
    """Return the larger x with (x + c) / ln(1 + x) = r, c being the circuit's share; 0 if there is none.

    With v = ln(1 + x) this is the larger root of the convex e^v - 1 + c - r v, to which Newton's method
    descends from the root without c.
    """
    snr = np.zeros(factor.shape)
    with np.errstate(divide="ignore", invalid="ignore"):
        has_root = (factor > 1.0) & (factor * (np.log(factor) - 1.0) + 1.0 >= circuit)
    r, c = factor[has_root], circuit[has_root]
    v = np.log1p(snr_of_energy_factor(r))
    bottom = np.log(r)  # where the function is least
    for _ in range(60):  # fewer than ten, unless both roots meet
        slope = np.exp(v) - r
        step = np.divide(np.expm1(v) + c - r * v, slope, out=np.zeros(v.shape), where=slope > 0)
        v = np.maximum(v - step, bottom)
        if (np.abs(step) <= 1e-15 * v).all():
            break
    snr[has_root] = np.expm1(v) * (1.0 - _ROUNDING)
    return snr


def _almost_meets(
    problem: AllocationProblem, device: IntArray, block: IntArray, top: FloatArray
) -> BoolArray:
    """Return whether some SNR up to ``top`` meets all limits of each pair within the tolerance."""
    floor: FloatArray | float = _relaxed_floor(problem)
    if problem.has_own_deadlines:
        floor = _snrs_by(own_deadline_s(problem, device, share=RELAXED), problem)
    can_reach = floor <= min(problem.rate.max_snr * RELAXED, LARGEST_SNR)
    if not np.any(can_reach):
        return np.zeros(top.shape, dtype=bool)
    floor = np.maximum(floor, max(problem.rate.min_snr, problem.min_snr / RELAXED))
    watts = watts_per_snr(problem, device, block)
    snr: FloatArray | float = floor
    if problem.radio.has_circuit:
        snr = np.maximum(floor, np.minimum(thrifty_snr(problem, device, block), top))
    energy = energy_at(problem, device, watts, np.clip(snr, 1e-300, LARGEST_SNR))
    is_frugal = energy <= problem.energy_limit_of(device) * RELAXED
    return np.asarray((top >= floor) & can_reach & is_frugal)


def _at_top(
    problem: AllocationProblem, device: IntArray, block: IntArray, top: FloatArray, power_cap: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return delay and energy of each pair at its largest useful power, infinite where nothing is sent."""
    power = problem.max_power_w[device]
    if problem.rate != RateModel():
        watts = watts_per_snr(problem, device, block)
        with np.errstate(invalid="ignore"):
            power = np.where(top < power_cap, top * watts, power)
    rate = problem.rate_bps_of(device, block, power)
    sends = rate > 0
    with np.errstate(over="ignore"):
        delay = np.where(
            sends, upload_delay_s(np.where(sends, rate, 1.0), model_bits=problem.model_bits), np.inf
        )
        energy = problem.upload_energy_j(device, np.where(sends, power, 1.0), delay)
    return delay, energy
