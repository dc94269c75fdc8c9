"""Why a device cannot upload, and by how much: which limit it misses, and who comes closest."""

from __future__ import annotations

import math

import numpy as np

from fedwave.allocation.limits import delay_s, snr_cap, snr_floor, snr_of_energy_limit, watts_per_snr
from fedwave.allocation.power import LARGEST_SNR, energy_factor
from fedwave.allocation.problem import AllocationProblem
from fedwave.allocation.tolerance import missed_by
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
    late, greedy = _excess(problem, device, block)
    with np.errstate(invalid="ignore"):
        share = np.minimum(late, greedy)
    share = np.where(snr_cap(problem, device, block) > 0, 0.0, share)
    can_send = (problem.max_power_w[device] > 0) & (problem.gain_of(device, block) > 0)
    return np.where(can_send, share, np.inf)


def why_no_upload(problem: AllocationProblem, device: int, block: IntArray) -> str:
    """Return why the device cannot upload on any of the blocks: power, gain, deadline or energy."""
    if problem.max_power_w[device] == 0:
        return f"device {device} cannot upload: its max_power_w is 0"
    pairs = np.full(block.shape, device, dtype=np.int64)
    if problem.gain_of(pairs, block).max(initial=0.0) <= 0:
        return f"device {device} cannot upload: its channel_gain is 0"
    best = int(np.argmin(misses(problem, pairs, block)))
    pair, on = pairs[best : best + 1], block[best : best + 1]
    late, greedy = (float(share[0]) for share in _excess(problem, pair, on))
    limit = float(problem.energy_limit_of(pair)[0])
    full_delay = float(delay_s(problem, pair, on, problem.max_power_w[pair])[0])
    deadline = problem.max_delay_s or math.inf
    if full_delay > deadline:
        return (
            f"device {device} cannot finish by {deadline:g} s even at full power "
            f"(it needs {full_delay:.6g} s): it {missed_by(late, 'max_delay_s')}"
        )
    least = float(watts_per_snr(problem, pair, on)[0]) * problem.nat_time_s
    if least >= limit:
        share = least / limit - 1.0 if limit > 0 else math.inf
        return (
            f"device {device} cannot upload within {limit:g} J even at the slowest rate "
            f"(it needs more than {least:.6g} J): it {missed_by(share, 'max_energy_j')}"
        )
    share, name = min((greedy, "max_energy_j"), (late, "max_delay_s"))
    return (
        f"device {device} cannot finish by {deadline:g} s with {limit:g} J "
        f"(fast enough takes too much energy): it {missed_by(share, name)}"
    )


def _excess(problem: AllocationProblem, device: IntArray, block: IntArray) -> tuple[FloatArray, FloatArray]:
    """Return by what share each pair misses its deadline within its energy limit, and the other way round."""
    shape = device.shape
    late, greedy = np.zeros(shape), np.zeros(shape)
    limit = problem.energy_limit_of(device)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        watts = watts_per_snr(problem, device, block)
        cap = problem.max_power_w[device] / watts
        if problem.max_energy_j is not None:
            cap = np.minimum(cap, snr_of_energy_limit(problem, device, block))
            factor = energy_factor(min(snr_floor(problem), LARGEST_SNR))
            greedy = watts * problem.nat_time_s * factor / limit - 1.0
        if problem.max_delay_s is not None:
            late = problem.nat_time_s / np.log1p(cap) / problem.max_delay_s - 1.0
            too_weak = problem.max_power_w[device] / watts < snr_floor(problem)
            greedy = np.where(too_weak, np.inf, greedy)  # no energy helps who lacks the power
    if problem.max_delay_s is None:
        late = np.full(shape, np.inf)
    if problem.max_energy_j is None:
        greedy = np.full(shape, np.inf)
    late, greedy = (np.where(np.isnan(share), np.inf, np.maximum(share, 0.0)) for share in (late, greedy))
    return late, greedy
