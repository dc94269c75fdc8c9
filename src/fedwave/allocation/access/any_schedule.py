"""A bound on every way to share blocks in time, with circuit power and with blocks that differ.

With circuit power equal shares until the end are no longer the best of all schedules: a device would rather
send at full power for a short time and switch off. Whatever the schedule, an upload with the area q takes at
least the transmit energy E(q) by Jensen's inequality, and is on for at least E(q) xi / p_max seconds. So its
circuit takes at least P_circuit E(q) xi / p_max, and dropping all else that couples the uploads in time
leaves a shared band without circuit power in which joules cost 1 + P_circuit xi / p_max times as much.

Where blocks differ, every block is taken to be as good for a device as its best one: the same nats per hertz
second then take no more power, so that whatever was possible still is.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fedwave.allocation.access.solve import allocate_by_access
from fedwave.allocation.problem import AllocationProblem
from fedwave.units import FloatArray
from fedwave.wireless.rate import RadioPower


def bound_of_any_schedule(
    problem: AllocationProblem, *, relative_gap: float = 1e-6, max_nodes: int = 10_000
) -> float:
    """Return an upper bound of U - eta_1 E - eta_2 T over all schedules of the blocks in time.

    It holds for every access, and for shares that change, pause and go on. It may be out of reach: full
    powers need not fit into the band side by side, no device can hold more than all of it, and not everybody
    can have its best block.
    """
    shared = replace(
        problem,
        access="shared-band",
        radio=_without_circuit(problem.radio),
        channel_gain=_best_gain(problem),
        interference_w=np.full(problem.num_blocks, problem.interference_w[:1].sum()),
    )
    circuit_w = problem.radio.circuit_power_w
    if problem.radio.has_circuit:
        power_w = np.where(problem.max_power_w > 0.0, problem.max_power_w, np.inf)
        dearer = 1.0 + circuit_w * problem.radio.amplifier_efficiency / power_w
        shared = replace(
            shared,
            energy_weight=np.asarray(problem.energy_weight) * dearer,
            capacitance=problem.capacitance / dearer,  # computing costs what it did
            static_power_w=np.asarray(problem.static_power_w) / dearer,
            joules_per_cycle=np.asarray(problem.joules_per_cycle) / dearer,
        )
    found = allocate_by_access(shared, relative_gap=relative_gap, max_steps=max_nodes, may_upload=None)
    return found.upper_bound


def _best_gain(problem: AllocationProblem) -> FloatArray:
    """Return the gain that gives each device, on block 0's noise, the SNR of its best block."""
    if not problem.num_blocks:
        return np.zeros(problem.num_devices)
    gain = problem.channel_gain if problem.is_frequency_selective else problem.channel_gain[:, None]
    return np.asarray((gain * (problem.block_noise_w[0] / problem.block_noise_w)).max(axis=1))


def _without_circuit(radio: RadioPower) -> RadioPower:
    return replace(radio, circuit_power_w=0.0)
