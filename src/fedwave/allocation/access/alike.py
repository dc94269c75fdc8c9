"""Blocks that are alike: what an upload depends on once it does not matter which blocks it holds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fedwave.allocation.problem import AllocationProblem
from fedwave.units import FloatArray, IntArray


def nats_of_model(problem: AllocationProblem) -> float:
    """Return s = S ln 2 / efficiency: the nats of an upload of model_bits, the unit of all others."""
    return problem.nat_delay_s * problem.bandwidth_hz


def load_of(problem: AllocationProblem, device: IntArray) -> FloatArray:
    """Return the size of each device's upload, in units of model_bits."""
    return np.broadcast_to(np.asarray(problem.bits_of(device)) / problem.model_bits, device.shape)


def noise_w_per_hz(problem: AllocationProblem) -> float:
    """Return N = (I + B N0) / B, noise and interference per hertz, the same on all blocks."""
    return float(problem.block_noise_w[:1].sum()) / problem.bandwidth_hz  # 0 without blocks


def unit_energy_j(problem: AllocationProblem, device: IntArray) -> FloatArray:
    """Return s N / (h xi): an upload at v nats per hertz second takes this times (e^v - 1) / v."""
    with np.errstate(divide="ignore", over="ignore"):
        nats = nats_of_model(problem) * load_of(problem, device)
        unit = nats * noise_w_per_hz(problem) / problem.channel_gain[device]
        return np.asarray(unit / problem.radio.amplifier_efficiency)


def energy_limits(problem: AllocationProblem) -> FloatArray | None:
    """Return what each device's limit is for an upload of model_bits: all of its energy grows with S."""
    if problem.max_energy_j is None:
        return None
    return np.asarray(problem.max_energy_j / load_of(problem, np.arange(problem.num_devices)))


def energy_weight_of(problem: AllocationProblem, device: IntArray) -> FloatArray:
    """Return eta_1 of each device."""
    weight = np.asarray(problem.energy_weight, dtype=np.float64)
    return np.asarray(np.broadcast_to(weight, problem.contribution.shape)[device])


def on_blocks(problem: AllocationProblem, count: int) -> AllocationProblem:
    """Return the problem with ``count`` blocks as its only one."""
    return replace(
        problem,
        access="one-block",
        max_uploads=None,
        device_bits=None,
        max_energy_j=energy_limits(problem),
        interference_w=problem.interference_w[:1] * count,
        bandwidth_hz=problem.bandwidth_hz * count,
    )
