"""Why a device cannot upload, and by how much: which limit it misses, and who comes closest."""

from __future__ import annotations

import math

import numpy as np

from fedwave.allocation.problem import AllocationProblem
from fedwave.allocation.tolerance import LIMIT_TOLERANCE, missed_by
from fedwave.allocation.uploads.power import LARGEST_SNR
from fedwave.allocation.uploads.snr_range import (
    energy_at,
    own_snr_floor,
    snr_cap,
    snr_of_energy_limit,
    thrifty_snr,
    watts_per_snr,
)
from fedwave.units import FloatArray, IntArray

_CHUNK = 100_000  # pairs looked at together


def nearest_miss(problem: AllocationProblem, device: IntArray) -> tuple[int, float]:
    """Return which of the devices comes closest to an upload, and the share by which it misses a limit.

    A share of 0: it can upload. An infinite one: what keeps all of them is a power, gain or limit of 0.
    """
    block = np.arange(problem.num_blocks)
    if not problem.is_frequency_selective:
        block = block[np.argmin(problem.block_noise_w)][None]  # the best block is the same for all
    chosen, least = int(device[0]), math.inf
    step = _CHUNK // block.size + 1
    for start in range(0, device.size, step):
        some = device[start : start + step]
        share = misses(problem, some[:, None], block[None, :]).min(axis=1)
        place = int(np.argmin(share))
        if share[place] < least:
            chosen, least = int(some[place]), float(share[place])
        if least == 0.0:
            break
    return chosen, least


def misses(problem: AllocationProblem, device: IntArray, block: IntArray) -> FloatArray:
    """Return the least share by which one limit would have to give way for each pair to upload.

    0: none has to. Infinite: there is no limit to blame. ``device`` and ``block`` broadcast.
    """
    device, block = np.broadcast_arrays(device, block)
    slow, greedy = _excess(problem, device, block)
    share = np.where(snr_cap(problem, device, block) > 0, 0.0, np.minimum(slow, greedy))
    can_send = (problem.max_power_w[device] > 0) & (problem.gain_of(device, block) > 0)
    return np.where(can_send, share, np.inf)


def why_no_upload(problem: AllocationProblem, device: int, block: IntArray) -> str:
    """Return why the device cannot upload on any of the blocks: power, gain, deadlines, decoder or energy."""
    if problem.max_power_w[device] == 0:
        return f"device {device} cannot upload: its max_power_w is 0"
    pairs = np.full(block.shape, device, dtype=np.int64)
    if problem.gain_of(pairs, block).max(initial=0.0) <= 0:
        return f"device {device} cannot upload: its channel_gain is 0"
    best = int(np.argmin(misses(problem, pairs, block)))
    pair, on = pairs[best : best + 1], block[best : best + 1]
    power_cap = problem.snr_of(pair, on, problem.max_power_w[pair])
    slow = {name: float(share[0]) for name, share in _shares(problem, pair, power_cap).items()}
    name = max(slow, key=lambda key: slow[key], default="")
    if name and slow[name] > LIMIT_TOLERANCE:
        return (
            f"device {device} {_too_slow(problem, device, name, power_cap)}: it {missed_by(slow[name], name)}"
        )
    limit, watts = float(problem.energy_limit_of(pair)[0]), watts_per_snr(problem, pair, on)
    least, rate = float(watts[0]) * problem.nat_delay_s / problem.radio.amplifier_efficiency, "slowest"
    if problem.radio.has_circuit:
        thrifty = np.maximum(np.minimum(thrifty_snr(problem, pair, on), power_cap), 1e-300)
        least, rate = float(energy_at(problem, pair, watts, thrifty)[0]), "cheapest"
    if least >= limit:
        share = least / limit - 1.0 if limit > 0 else math.inf
        return (
            f"device {device} cannot upload within {limit:g} J even at the {rate} rate "
            f"(it needs more than {least:.6g} J): it {missed_by(share, 'max_energy_j')}"
        )
    within, greedy = _excess(problem, pair, on)
    cap = np.minimum(power_cap, snr_of_energy_limit(problem, pair, on))
    slow = {name: float(share[0]) for name, share in _shares(problem, pair, cap).items()}
    name = max(slow, key=lambda key: slow[key], default="")
    share, missed = min((float(greedy[0]), "max_energy_j"), (float(within[0]), name))
    goal = f"finish by {_deadline_s(problem, device):g} s" if name == "max_delay_s" else f"meet {name}"
    return (
        f"device {device} cannot {goal} with {limit:g} J (fast enough takes too much energy): "
        f"it {missed_by(share, missed)}"
    )


def _too_slow(problem: AllocationProblem, device: int, name: str, cap: FloatArray) -> str:
    """Return what a device cannot do with all its power."""
    needed = float(_delay_s(problem, cap)[0])
    if name == "max_delay_s":
        deadline_s = _deadline_s(problem, device)
        return f"cannot finish by {deadline_s:g} s even at full power (it needs {needed:.6g} s)"
    if name == "max_round_delay_s":
        needed += problem.fastest_compute_s + problem.fixed_delay_s
        return (
            f"cannot end the round by {problem.max_round_delay_s:g} s even with all at full power and "
            f"frequency (it needs {needed:.6g} s)"
        )
    return f"reaches an SNR of {float(cap[0]):.4g} at full power"


def _excess(problem: AllocationProblem, device: IntArray, block: IntArray) -> tuple[FloatArray, FloatArray]:
    """Return by what share each pair is too slow within its energy limit, and too greedy if fast enough."""
    watts = watts_per_snr(problem, device, block)
    power_cap = problem.snr_of(device, block, problem.max_power_w[device])
    cap, greedy = power_cap, np.full(device.shape, np.inf)
    if problem.max_energy_j is not None:
        cap = np.minimum(cap, snr_of_energy_limit(problem, device, block))
        floor = np.maximum(own_snr_floor(problem, device), problem.min_snr)
        if np.any(floor <= LARGEST_SNR):
            snr = np.maximum(
                np.minimum(floor, LARGEST_SNR), np.minimum(thrifty_snr(problem, device, block), power_cap)
            )
            limit = problem.energy_limit_of(device)
            with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
                energy = np.where(
                    snr > 0,
                    energy_at(problem, device, watts, np.maximum(snr, 1e-300)),
                    watts * problem.nat_delay_s,
                )
                greedy = energy / limit - 1.0
            can_reach = (power_cap >= floor) & np.isfinite(greedy)
            greedy = np.where(can_reach, np.maximum(greedy, 0.0), np.inf)  # energy helps nobody without power
    slow = np.full(device.shape, np.inf)
    shares = _shares(problem, device, cap)
    if shares:
        slow = np.maximum(np.max(list(shares.values()), axis=0), 0.0)
    return slow, greedy


def _shares(problem: AllocationProblem, device: IntArray, cap: FloatArray) -> dict[str, FloatArray]:
    """Return by what share an upload at the given SNR is too slow or weak for each limit; <= 0: not."""
    shares = {}
    delay = _delay_s(problem, cap)
    if problem.max_delay_s is not None:
        limit_s = np.asarray(problem.deadline_of(device))
        shares["max_delay_s"] = np.where(np.isinf(limit_s), -1.0, delay / np.minimum(limit_s, 1e300) - 1.0)
    if problem.max_round_delay_s is not None:
        rest_s = problem.fastest_compute_s + problem.fixed_delay_s
        shares["max_round_delay_s"] = (rest_s + delay) / problem.max_round_delay_s - 1.0
    with np.errstate(over="ignore", divide="ignore"):
        if problem.min_snr > 0.0:
            shares["min_snr"] = problem.min_snr / cap - 1.0
        if problem.rate.min_snr > 0.0:
            shares["rate.min_snr"] = problem.rate.min_snr / cap - 1.0
    return shares


def _deadline_s(problem: AllocationProblem, device: int) -> float:
    return float(np.broadcast_to(problem.deadline_of(np.array([device])), 1)[0])


def _delay_s(problem: AllocationProblem, snr: FloatArray) -> FloatArray:
    with np.errstate(over="ignore", divide="ignore"):
        return np.asarray(problem.nat_delay_s / np.log1p(np.minimum(snr, problem.rate.max_snr)))
