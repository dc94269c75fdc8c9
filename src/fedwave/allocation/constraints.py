"""Which constraints of (P) and which hard limits an allocation breaks, checked from the definitions alone."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from fedwave.allocation.problem import AllocationProblem
from fedwave.allocation.solution import Allocation, account, misfits, upload_rate_bps, upload_snr
from fedwave.allocation.tolerance import LIMIT_TOLERANCE, exceeds
from fedwave.units import BoolArray, FloatArray
from fedwave.wireless.link import compute_delay_s, upload_delay_s


def violations(problem: AllocationProblem, allocation: Allocation) -> tuple[str, ...]:
    """Return one line for each constraint of (P) or hard limit that the allocation breaks; empty if none.

    A limit holds within a relative 1e-9, see tolerance.py. Each line names the device. Decisions of the wrong
    shape, or on blocks that do not exist, leave nothing else to compare: then only they are listed.
    """
    found = misfits(problem, allocation)
    if found:
        return found
    problem = problem.taking(allocation.offer_of_device)
    allocation = replace(allocation, offer_of_device=None)
    with np.errstate(over="ignore"):  # an absurd power is listed, not raised
        return (
            *_shared_blocks(problem, allocation),
            *_too_many(problem, allocation),
            *_out_of_range(allocation.transmit_power_w, problem.max_power_w, "transmits", "W", "max_power_w"),
            *_broken_uploads(problem, allocation),
            *_out_of_range(
                allocation.cpu_frequency_hz, problem.max_frequency_hz, "computes", "Hz", "max_frequency_hz"
            ),
            *_broken_computing(problem, allocation),
            *_late_rounds(problem, allocation),
            *_overspent(problem, allocation),
        )


def _shared_blocks(problem: AllocationProblem, allocation: Allocation) -> Iterator[str]:
    """Yield each block that carries several devices, Eq. (27); else what breaks the other accesses' rules."""
    if allocation.bandwidth_of_device_hz is not None:
        yield from _broken_access(problem, allocation, np.asarray(allocation.bandwidth_of_device_hz))
        return
    block, count = np.unique(allocation.block_of_device[allocation.selected], return_counts=True)
    for shared in block[count > 1]:
        devices = np.flatnonzero(allocation.block_of_device == shared)
        yield f"block {shared} carries devices {', '.join(map(str, devices))}: one may hold it, Eq. (27)"


def _too_many(problem: AllocationProblem, allocation: Allocation) -> Iterator[str]:
    """Yield a number of uploads above max_uploads."""
    most = problem.max_uploads
    if most is not None and allocation.num_selected > most:
        yield f"{allocation.num_selected} devices upload, above {most} (max_uploads)"


def _broken_access(problem: AllocationProblem, allocation: Allocation, width_hz: FloatArray) -> Iterator[str]:
    """Yield what is wrong with the shares of the band."""
    band_hz, is_selected = problem.num_blocks * problem.bandwidth_hz, allocation.block_of_device >= 0
    for i in np.flatnonzero(~_is_number(width_hz) | ((width_hz > 0) != is_selected)):
        yield f"device {i} holds {width_hz[i]:g} Hz, but {'uploads' if is_selected[i] else 'does not upload'}"
    held = width_hz[is_selected & _is_number(width_hz)]
    if problem.access == "tdma":
        for i in np.flatnonzero(is_selected & (np.abs(width_hz - band_hz) > LIMIT_TOLERANCE * band_hz)):
            yield f"device {i} holds {width_hz[i]:g} Hz of its slot, not the whole band of {band_hz:g} Hz"
    elif exceeds(float(held.sum()), band_hz):
        yield f"the uploads hold {held.sum():g} Hz together, above the {band_hz:g} Hz of all blocks"
    if problem.access == "blocks":
        count = width_hz / problem.bandwidth_hz
        for i in np.flatnonzero(is_selected & (np.abs(count - np.rint(count)) > LIMIT_TOLERANCE * count)):
            yield f"device {i} holds {count[i]:g} blocks: whole ones only"


def _out_of_range(values: FloatArray, largest: FloatArray, verb: str, unit: str, limit: str) -> Iterator[str]:
    """Yield each device outside 0..limit, Eq. (33), (34); a value that is no number is outside, too."""
    for device in np.flatnonzero((values < 0) | exceeds(values, largest)):
        yield f"device {device} {verb} at {values[device]:g} {unit}, outside 0..{largest[device]:g} ({limit})"


def _broken_uploads(problem: AllocationProblem, allocation: Allocation) -> Iterator[str]:
    """Yield each device that sends without a block, never ends, or breaks the deadline or its own limit."""
    is_idle = (allocation.block_of_device < 0) & _is_number(allocation.transmit_power_w)
    for i in np.flatnonzero(is_idle & (allocation.transmit_power_w > 0)):
        yield f"device {i} transmits at {allocation.transmit_power_w[i]:g} W without a block"
    device = np.flatnonzero((allocation.block_of_device >= 0) & _is_number(allocation.transmit_power_w))
    block, power = allocation.block_of_device[device], allocation.transmit_power_w[device]
    width = allocation.bandwidth_of_device_hz
    rate = upload_rate_bps(problem, device, block, power, width)
    delay = upload_delay_s(rate, model_bits=problem.bits_of(device))
    ends = np.isfinite(delay)
    for i, m, watts in zip(device[~ends], block[~ends], power[~ends], strict=True):
        gain = float(problem.gain_of(i, m))
        yield f"device {i} sends nothing on block {m} ({watts:g} W at a gain of {gain:g}): it never finishes"
    device, power, delay = device[ends], power[ends], delay[ends]
    deadline = np.broadcast_to(problem.deadline_of(device), delay.shape)
    is_tdma = problem.access == "tdma"
    end, verb = (np.cumsum(delay), "until") if is_tdma else (delay, "for")
    for k in np.flatnonzero(exceeds(end, deadline)):
        yield f"device {device[k]} uploads {verb} {end[k]:g} s, above {deadline[k]:g} (max_delay_s)"
    energy, most = problem.upload_energy_j(device, power, delay), problem.energy_limit_of(device)
    for k in np.flatnonzero(exceeds(energy, most)):
        yield f"device {device[k]} uploads with {energy[k]:g} J, above {most[k]:g} (max_energy_j)"
    snr = upload_snr(problem, device, allocation.block_of_device[device], power, width)
    for k in np.flatnonzero(snr < problem.min_snr * (1.0 - LIMIT_TOLERANCE)):
        yield f"device {device[k]} sends at an SNR of {snr[k]:g}, below {problem.min_snr:g} (min_snr)"


def _broken_computing(problem: AllocationProblem, allocation: Allocation) -> Iterator[str]:
    """Yield each device whose computing never ends, or breaks its deadline."""
    frequency, workload = allocation.cpu_frequency_hz, problem.workload_cycles
    is_busy = (workload > 0) & _is_number(frequency)
    for i in np.flatnonzero(is_busy & (frequency == 0)):
        yield f"device {i} has {workload[i]:g} cycles of work at 0 Hz: it never finishes"
    if problem.min_frequency_hz is not None:
        least = np.asarray(problem.min_frequency_hz)
        for i in np.flatnonzero(is_busy & (frequency > 0) & (frequency < least * (1.0 - LIMIT_TOLERANCE))):
            yield f"device {i} computes at {frequency[i]:g} Hz, below {least[i]:g} (min_frequency_hz)"
    limit, name = problem.max_compute_delay_s, "max_compute_delay_s"
    if limit is None:
        if problem.max_round_delay_s is not None or problem.compute_deadline_s == math.inf:
            return
        limit = max(problem.compute_deadline_s, problem.fastest_compute_s)
        name = "max_delay_s, which holds for computing, too, where delay_weight is 0"
    device = np.flatnonzero(is_busy & (frequency > 0))
    delay = compute_delay_s(frequency[device], workload_cycles=workload[device])
    for k in np.flatnonzero(exceeds(delay, limit)):
        yield f"device {device[k]} computes for {delay[k]:g} s, above {limit:g} ({name})"


def _late_rounds(problem: AllocationProblem, allocation: Allocation) -> Iterator[str]:
    """Yield each device whose upload ends after the round, or the round if computing alone takes longer."""
    limit = problem.max_round_delay_s
    if (
        limit is None
        or not (_is_number(allocation.cpu_frequency_hz) & _is_number(allocation.transmit_power_w)).all()
    ):
        return
    costs = account(problem, allocation)
    start = float(costs.compute_delay_s.max(initial=0.0)) + problem.fixed_delay_s
    if exceeds(start, limit):
        yield f"computing ends after {start:g} s of the round, above {limit:g} (max_round_delay_s)"
        return
    end = start + costs.upload_end_s
    for i in np.flatnonzero(costs.is_selected & exceeds(end, limit)):
        yield f"device {i} uploads until {end[i]:g} s of the round, above {limit:g} (max_round_delay_s)"


def _overspent(problem: AllocationProblem, allocation: Allocation) -> Iterator[str]:
    """Yield each device whose computing and upload take more than it has for both."""
    if (
        problem.max_total_energy_j is None
        or not (_is_number(allocation.cpu_frequency_hz) & _is_number(allocation.transmit_power_w)).all()
    ):
        return
    costs, most = account(problem, allocation), np.asarray(problem.max_total_energy_j)
    energy = costs.compute_energy_j + costs.upload_energy_j
    for i in np.flatnonzero(exceeds(energy, most)):
        yield f"device {i} takes {energy[i]:g} J in all, above {most[i]:g} (max_total_energy_j)"


def _is_number(values: FloatArray) -> BoolArray:
    return np.isfinite(values) & (values >= 0)
