"""The certified optimum of (P) where devices share the band in another way than one block each."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fedwave.allocation.access.alike import load_of, nats_of_model, noise_w_per_hz
from fedwave.allocation.access.band import Band, shared_band, slots
from fedwave.allocation.access.band_search import BandSearch
from fedwave.allocation.access.block_options import block_options
from fedwave.allocation.access.block_search import BlockSearch
from fedwave.allocation.access.delay_price import DelayPrice
from fedwave.allocation.access.nats import MOST_NATS
from fedwave.allocation.access.offers import OfferRows
from fedwave.allocation.access.proof import Proof
from fedwave.allocation.computing.cpu_frequency import CpuPlan, compute_cost, solve_cpu_frequencies
from fedwave.allocation.optimal.candidates import useful_devices
from fedwave.allocation.problem import AllocationProblem
from fedwave.allocation.solution import Allocation, Status, build_allocation
from fedwave.units import BoolArray, FloatArray, IntArray


def allocate_by_access(
    problem: AllocationProblem, *, relative_gap: float, max_steps: int, may_upload: BoolArray | None
) -> Allocation:
    """Return an allocation that is proven optimal for (P) under the problem's access, within the gap."""
    cpu = solve_cpu_frequencies(problem)
    free_cost = compute_cost(problem, cpu.cpu_frequency_hz)
    delay = DelayPrice.of(problem)
    rows = OfferRows.of(problem)
    each, may_be = rows.problem, rows.mask(may_upload)
    row = np.flatnonzero((each.contribution > 0.0) if may_be is None else (each.contribution > 0.0) & may_be)
    if problem.num_blocks == 0:
        row = row[:0]
    if problem.access == "blocks":
        if row.size and not problem.has_own_bits:
            row = _useful(problem, may_upload)
        options = replace(block_options(each, row), group=rows.groups_of(row, problem))
        search = BlockSearch(options, delay, num_blocks=problem.num_blocks, max_uploads=problem.max_uploads)
        found = search.run(relative_gap=relative_gap, compute_cost=free_cost, max_knapsacks=max_steps)
        place = np.flatnonzero(found.counts)
        chosen = options.only(place, found.counts[place])
        row, delay_s, proof = row[place], found.delay_s, found.proof
        width_hz = found.counts[place].astype(np.float64) * problem.bandwidth_hz
        sending_s = chosen.sending_s(delay_s)[:, 0]
    else:
        band = _band(each, row)
        band = replace(band, group=rows.groups_of(band.device, problem))
        plan = BandSearch(band, delay, max_uploads=problem.max_uploads).run(
            relative_gap=relative_gap, compute_cost=free_cost, max_nodes=max_steps
        )
        row, delay_s, proof = band.device[plan.index], plan.delay_s, plan.proof
        width_hz, sending_s = areas_as_shares(each, row, plan.nats, delay_s)
    offer = rows.taken(row, problem)
    allocation = finish(
        problem.taking(offer),
        cpu,
        device=rows.device[row],
        width_hz=width_hz,
        sending_s=sending_s,
        delay_s=delay_s,
        proof=proof,
        may_upload=may_upload,
    )
    return allocation if offer is None else replace(allocation, offer_of_device=offer)


def _useful(problem: AllocationProblem, may_upload: BoolArray | None) -> IntArray:
    """Return the devices with fewer than M better ones: at most M - 1 others upload, so one is free.

    On several blocks a deadline is no reason to leave somebody out, hence without them.
    """
    relaxed = replace(
        problem,
        access="one-block",
        max_uploads=None,
        max_delay_s=None,
        max_round_delay_s=None,
        delay_weight=max(problem.delay_weight, 1.0),
    )
    return useful_devices(relaxed, may_upload)


def _band(problem: AllocationProblem, device: IntArray) -> Band:
    if problem.num_blocks == 0:
        device = device[:0]
        return Band(
            device=device,
            contribution=np.zeros(0),
            energy_price=np.zeros(0),
            reach_per_s=np.zeros(0),
            most_nats=np.zeros(0),
            least_nats=np.zeros(0),
            circuit_price=np.zeros(0),
            load=np.zeros(0),
            width_per_s=0.0,
        )
    return slots(problem, device) if problem.access == "tdma" else shared_band(problem, device)


def areas_as_shares(
    problem: AllocationProblem, device: IntArray, nats: FloatArray, delay_s: float
) -> tuple[FloatArray, FloatArray]:
    """Return hertz and seconds of each upload: shares until all are done, or slots of the whole band."""
    band_hz = problem.num_blocks * problem.bandwidth_hz
    area = nats_of_model(problem) * load_of(problem, device) / nats
    if problem.access == "tdma":
        return np.full(nats.shape, band_hz), area / band_hz
    width = area / delay_s if nats.size else area
    floor = _decoded_snr(problem)
    if floor > 0.0:  # at peak power the SNR is kept by holding no more hertz, by rounding
        widest = problem.max_power_w[device] * problem.channel_gain[device] / noise_w_per_hz(problem)
        width = np.minimum(width, widest / floor)
    total = float(width.sum())
    if total > band_hz:  # by rounding
        width = width * (band_hz / total)
    return width, np.full(nats.shape, delay_s)


def finish(
    problem: AllocationProblem,
    cpu: CpuPlan,
    *,
    device: IntArray,
    width_hz: FloatArray,
    sending_s: FloatArray,
    delay_s: float,
    proof: Proof | None = None,
    may_upload: BoolArray | None = None,
    method: str = "optimal",
) -> Allocation:
    """Return the allocation of devices with shares of the band, each sending for the given time."""
    order = np.argsort(device, kind="stable")
    device, width_hz, sending_s = device[order], width_hz[order], sending_s[order]
    free_cost = compute_cost(problem, cpu.cpu_frequency_hz)
    power = power_for(problem, device, width_hz, sending_s)
    reason = cpu.reason
    if problem.max_round_delay_s is not None and not reason and device.size:
        left_s = problem.max_round_delay_s - problem.fixed_delay_s - delay_s
        cpu = solve_cpu_frequencies(problem, finish_by_s=left_s)
    status = Status.FEASIBLE
    if proof is not None:
        status = Status.LIMIT
        if proof.is_closed:
            status = Status.OPTIMAL if proof.is_exact else Status.GAP_REACHED
    if reason:
        status = Status.INFEASIBLE
    elif device.size == 0:
        status, reason = _explain_nobody(problem, status, may_upload)
    return build_allocation(
        problem,
        method=method,
        device=device,
        block=first_blocks(problem, width_hz),
        power_w=power,
        cpu_frequency_hz=cpu.cpu_frequency_hz,
        status=status,
        reason=reason,
        iterations=0 if proof is None else proof.num_steps,
        upload_upper_bound=np.inf if proof is None else proof.upper_bound,
        free_compute_cost=free_cost if problem.max_round_delay_s is not None else None,
        bandwidth_hz=width_hz,
    )


def power_for(
    problem: AllocationProblem, device: IntArray, width_hz: FloatArray, sending_s: FloatArray
) -> FloatArray:
    """Return the power that sends a model over so many hertz in so many seconds: b N / h (e^v - 1)."""
    sent = nats_of_model(problem) * load_of(problem, device)
    nats = np.minimum(sent / (width_hz * sending_s), MOST_NATS)
    snr = np.minimum(np.expm1(nats), problem.rate.max_snr)
    snr = np.maximum(snr, _decoded_snr(problem))
    power = width_hz * noise_w_per_hz(problem) / problem.channel_gain[device] * snr
    return np.minimum(power, problem.max_power_w[device])


def _decoded_snr(problem: AllocationProblem) -> float:
    """Return a little more than the least SNR: what a power gives must not fall below it by rounding."""
    return max(problem.rate.min_snr, problem.min_snr) * (1.0 + 1e-14)


def first_blocks(problem: AllocationProblem, width_hz: FloatArray) -> IntArray:
    """Return the block at which each share begins, side by side from block 0 on; slots all begin there."""
    if problem.access == "tdma":
        return np.zeros(width_hz.shape, dtype=np.int64)
    begin = (np.cumsum(width_hz) - width_hz) / problem.bandwidth_hz
    if problem.access == "blocks":
        begin = np.rint(begin)
    return np.minimum(begin.astype(np.int64), max(problem.num_blocks - 1, 0))


def _explain_nobody(
    problem: AllocationProblem, status: Status, may_upload: BoolArray | None
) -> tuple[Status, str]:
    """Return status and reason when nobody uploads."""
    if problem.num_devices == 0:
        return status, "there are no devices"
    if problem.num_blocks == 0:
        return status, "there are no blocks"
    if problem.max_uploads == 0:
        return status, "max_uploads is 0"
    useful = problem.contribution > 0
    if may_upload is not None:
        useful &= may_upload
    if not useful.any():
        return status, "no device that may upload has a contribution > 0"
    return status, "no upload is worth its energy and delay, or can be made within the limits"
