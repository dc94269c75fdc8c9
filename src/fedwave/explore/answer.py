"""What the cell tab is told, as plain values: the map, an allocation, the curve over the delay, the front."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from fedwave.allocation import (
    Allocation,
    AllocationProblem,
    TimedAllocation,
    account,
    allocate,
    compare_methods,
    describe_front,
    objective_terms,
    pareto_front,
)
from fedwave.explore.delay_curve import delay_curve, ives_start_s, ives_steps
from fedwave.units import FloatArray, linear_to_db
from fedwave.wireless.cell import Cell

_TENTH, _HUNDREDTH, _TEN_THOUSANDTH = 1, 2, 4  # digits that a picture can show


def map_of(cell: Cell, problem: AllocationProblem) -> dict[str, Any]:
    """Return where the devices are and what their links are worth, one entry per device."""
    every = np.arange(problem.num_devices)[:, np.newaxis]
    snr = problem.snr_of(every, np.arange(problem.num_blocks), problem.max_power_w[:, np.newaxis])
    return places_of(cell, problem.channel_gain) | {
        "best_sinr_db": rounded(linear_to_db(snr.max(axis=1)), _HUNDREDTH),
        "contribution": rounded(problem.contribution, _TEN_THOUSANDTH),
        "noise_w": plain(problem.block_noise_w),
    }


def places_of(cell: Cell, channel_gain: FloatArray) -> dict[str, Any]:
    """Return where the devices are; without a geometry, only how well they are heard."""
    place = cell.large_scale
    gain = channel_gain.mean(axis=1) if channel_gain.ndim == 2 else channel_gain
    found: dict[str, Any] = {
        "num_devices": cell.num_devices,
        "gain_db": rounded(linear_to_db(gain), _HUNDREDTH),
        "position_m": None,
    }
    if place is not None:
        sight = place.is_line_of_sight
        found |= {
            "position_m": [rounded(axis, _TENTH) for axis in place.position_m.T],
            "distance_m": rounded(place.distance_m, _TENTH),
            "is_line_of_sight": None if sight is None else sight.astype(int).tolist(),
            "shadowing_db": rounded(place.shadowing_db, _TENTH),
        }
    return found


def allocation_of(problem: AllocationProblem, timed: TimedAllocation) -> dict[str, Any]:
    """Return an allocation: its objective term by term, and a row for each upload."""
    found = timed.allocation
    entry = account(problem, found)
    device = found.selected
    block = found.block_of_device[device]
    return {
        "method": found.method,
        "objective": number(found.objective),
        "upper_bound": number(found.upper_bound),
        "gap": number(found.gap),
        "contribution": number(found.contribution),
        "energy_j": number(found.energy_j),
        "delay_s": number(found.delay_s),
        "compute_delay_s": number(found.compute_delay_s),
        "upload_delay_s": number(found.upload_delay_s),
        "num_selected": found.num_selected,
        "iterations": found.iterations,
        "status": found.status.value,
        "reason": found.reason,
        "seconds": timed.seconds,
        "terms": [
            {"name": term.name, "unit": term.unit, "value": number(term.value), "worth": number(term.worth)}
            for term in objective_terms(problem, found)
        ],
        "uploads": {
            "device": device.tolist(),
            "block": block.tolist(),
            "power_w": plain(found.transmit_power_w[device]),
            "sinr_db": plain(linear_to_db(problem.snr_of(device, block, found.transmit_power_w[device]))),
            "delay_s": plain(entry.upload_delay_s[device]),
            "energy_j": plain(entry.upload_energy_j[device]),
            "success": plain(entry.success_probability[device]),
        },
    }


def methods_of(
    problem: AllocationProblem, methods: Iterable[str] | None, *, seed: int
) -> dict[str, dict[str, Any]]:
    """Return the allocation of each method, by default of all."""
    compared = compare_methods(problem, methods, seed=seed)
    return {name: allocation_of(problem, timed) for name, timed in compared.items()}


def curve_of(problem: AllocationProblem) -> dict[str, Any]:
    """Return the objective over the upload delay, its proven bound, and the steps of IVES."""
    optimal = allocate(problem)
    start_s = ives_start_s(problem)
    curve = delay_curve(problem, optimal, slowest_s=start_s)
    if curve is None:
        return {"delay_s": [], "objective": [], "bound": [], "steps": [], **_proven(optimal)}
    steps = ives_steps(problem)
    return {
        "delay_s": plain(curve.delay_s),
        "objective": plain(curve.objective),
        "bound": plain(curve.bound),
        "steps": [{"delay_s": number(one.delay_s), "objective": number(one.objective)} for one in steps],
        "start_s": start_s,
        **_proven(optimal),
    }


def _proven(optimal: Allocation) -> dict[str, Any]:
    return {
        "upper_bound": number(optimal.upper_bound),
        "optimum": {"delay_s": number(optimal.upload_delay_s), "objective": number(optimal.objective)},
    }


def front_of(problem: AllocationProblem, ratios: Sequence[float]) -> dict[str, Any]:
    """Return the optimum for each ratio of the weights; 1 is the problem's own."""
    return describe_front(pareto_front(problem, ratios))


def number(value: float) -> float | None:
    """Return a number for JSON, which has no infinity."""
    return float(value) if math.isfinite(value) else None


def plain(values: FloatArray) -> list[float | None]:
    """Return an array for JSON."""
    return [number(value) for value in values.tolist()]


def rounded(values: FloatArray, digits: int) -> list[float | None]:
    """Return an array for a picture."""
    return plain(np.round(values, digits))
