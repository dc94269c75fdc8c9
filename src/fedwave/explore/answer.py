"""What the cell tab is told, as plain values: the map, an allocation, the curve over the delay, the front."""

from __future__ import annotations

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
from fedwave.allocation.schedule import handed_on, upload_schedule
from fedwave.errors import ConfigError
from fedwave.explore.delay_curve import delay_curve, ives_start_s, ives_steps
from fedwave.json_values import json_value
from fedwave.units import FloatArray, IntArray, linear_to_db
from fedwave.wireless.cell import Cell

_TENTH, _HUNDREDTH, _TEN_THOUSANDTH = 1, 2, 4  # digits that a picture can show


def map_of(cell: Cell, problem: AllocationProblem) -> dict[str, Any]:
    """Return where the devices are and what their links are worth, one entry per device."""
    every = np.arange(problem.num_devices)[:, np.newaxis]
    snr = problem.snr_of(every, np.arange(problem.num_blocks), problem.max_power_w[:, np.newaxis])
    return places_of(cell, problem.channel_gain) | {
        "best_sinr_db": _rounded(linear_to_db(snr.max(axis=1)), _HUNDREDTH),
        "contribution": _rounded(problem.contribution, _TEN_THOUSANDTH),
        "noise_w": json_value(problem.block_noise_w),
    }


def places_of(cell: Cell, channel_gain: FloatArray) -> dict[str, Any]:
    """Return where the devices are; without a geometry, only how well they are heard."""
    place = cell.large_scale
    gain = channel_gain.mean(axis=1) if channel_gain.ndim == 2 else channel_gain
    found: dict[str, Any] = {
        "num_devices": cell.num_devices,
        "gain_db": _rounded(linear_to_db(gain), _HUNDREDTH),
        "position_m": None,
    }
    if place is not None:
        sight = place.is_line_of_sight
        found |= {
            "position_m": [_rounded(axis, _TENTH) for axis in place.position_m.T],
            "distance_m": _rounded(place.distance_m, _TENTH),
            "is_line_of_sight": None if sight is None else sight.astype(int).tolist(),
            "shadowing_db": _rounded(place.shadowing_db, _TENTH),
        }
    return found


def allocation_of(
    problem: AllocationProblem, timed: TimedAllocation, *, hands_on: bool = False
) -> dict[str, Any]:
    """Return an allocation: its objective term by term, a row for each upload, and the band over time."""
    found = timed.allocation
    entry = account(problem, found)
    device = found.selected
    width = found.bandwidth_of_device_hz
    held = np.ones(device.size) if width is None else width[device] / problem.bandwidth_hz
    schedule = handed_on(problem, found) if hands_on else upload_schedule(problem, found)
    answer: dict[str, Any] = json_value(
        {
            "method": found.method,
            "objective": found.objective,
            "upper_bound": found.upper_bound,
            "gap": found.gap,
            "contribution": found.contribution,
            "energy_j": found.energy_j,
            "delay_s": found.delay_s,
            "compute_delay_s": found.compute_delay_s,
            "upload_delay_s": found.upload_delay_s,
            "num_selected": found.num_selected,
            "iterations": found.iterations,
            "status": found.status.value,
            "reason": found.reason,
            "seconds": timed.seconds,
            "terms": [
                {
                    "name": term.name,
                    "unit": term.unit,
                    "value": term.value,
                    "worth": term.worth,
                }
                for term in objective_terms(problem, found)
            ],
            "uploads": {
                "device": device.tolist(),
                "block": first_block(problem.access, found.block_of_device[device], held),
                "width": held,
                "start_s": entry.upload_start_s[device],
                "power_w": found.transmit_power_w[device],
                "sinr_db": entry.sinr_db[device],
                "delay_s": entry.upload_delay_s[device],
                "energy_j": entry.upload_energy_j[device],
                "success": entry.success_probability[device],
            },
            "schedule": {
                "device": schedule.device,
                "first": schedule.first_hz / problem.bandwidth_hz,
                "width": schedule.width_hz / problem.bandwidth_hz,
                "start_s": schedule.start_s,
                "end_s": schedule.end_s,
                "power_w": schedule.power_w,
            },
        }
    )
    return answer


def first_block(access: str, block: IntArray, width: FloatArray) -> list[Any]:
    """Return where each upload's hertz begin, in blocks; shares lie side by side in the order of devices."""
    found: list[Any] = (np.cumsum(width) - width if access == "shared-band" else block).tolist()
    return found


def methods_of(
    problem: AllocationProblem, methods: Iterable[str] | None, *, seed: int, hands_on: bool = False
) -> dict[str, dict[str, Any]]:
    """Return the allocation of each method, by default of all that know the problem's access."""
    compared = compare_methods(problem, methods, seed=seed)
    return {name: allocation_of(problem, timed, hands_on=hands_on) for name, timed in compared.items()}


def curve_of(problem: AllocationProblem) -> dict[str, Any]:
    """Return the objective over the upload delay, its proven bound, and the steps of IVES."""
    if problem.access != "one-block":
        raise ConfigError(
            f'the curve over the delay is of one block each, got access "{problem.access}". Use one-block.'
        )
    if problem.max_uploads is not None:
        raise ConfigError(
            "the curve over the delay is without a limit on uploads, got max_uploads = "
            f"{problem.max_uploads}. Leave it out."
        )
    optimal = allocate(problem)
    start_s = ives_start_s(problem)
    curve = delay_curve(problem, optimal, slowest_s=start_s)
    if curve is None:
        return {"delay_s": [], "objective": [], "bound": [], "steps": [], **json_value(_proven(optimal))}
    steps = ives_steps(problem)
    answer: dict[str, Any] = json_value(
        {
            "delay_s": curve.delay_s,
            "objective": curve.objective,
            "bound": curve.bound,
            "steps": [{"delay_s": one.delay_s, "objective": one.objective} for one in steps],
            "start_s": start_s,
            **_proven(optimal),
        }
    )
    return answer


def _proven(optimal: Allocation) -> dict[str, Any]:
    return {
        "upper_bound": optimal.upper_bound,
        "optimum": {
            "delay_s": optimal.upload_delay_s,
            "objective": optimal.objective,
        },
    }


def front_of(problem: AllocationProblem, ratios: Sequence[float]) -> dict[str, Any]:
    """Return the optimum for each ratio of the weights; 1 is the problem's own."""
    return describe_front(pareto_front(problem, ratios))


def _rounded(values: FloatArray, digits: int) -> Any:
    """Return an array with no more digits than a picture shows."""
    return json_value(np.round(values, digits))
