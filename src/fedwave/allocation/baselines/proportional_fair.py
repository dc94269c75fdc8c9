"""proportional-fair: the blocks go to whoever is good now by the measure of what it had so far.

The scheduler of most base stations: rates over each device's mean rate are summed and maximised, at full
power. It knows the channel and nothing of learning. Without a history all means are alike, and it serves the
best channels; a planner that trains over a cell remembers the means.
"""

from __future__ import annotations

import numpy as np

from fedwave.allocation.access.rules import allocation_of, equal_split
from fedwave.allocation.baselines.on_blocks import allocate_on_blocks
from fedwave.allocation.baselines.value_rate import by_score
from fedwave.allocation.computing.cpu_frequency import solve_cpu_frequencies
from fedwave.allocation.problem import AllocationProblem
from fedwave.allocation.solution import Allocation
from fedwave.allocation.uploads.assignment import assign_devices
from fedwave.allocation.uploads.snr_range import snr_caps, watts_per_snr
from fedwave.allocation.uploads.upload_plan import hurried
from fedwave.errors import ProblemError
from fedwave.units import BoolArray, FloatArray

WINDOW = 10  # rounds that a mean looks back
_NEVER_SERVED = 1e-6  # of the best rate: the mean of a device without a past, so that it comes first


def allocate_proportional_fair(
    problem: AllocationProblem,
    *,
    mean_rate_bps: FloatArray | None = None,
    may_upload: BoolArray | None = None,
) -> Allocation:
    """Return the matching with the largest sum of rate over mean rate, each at full power.

    ``mean_rate_bps`` is what each device had in earlier rounds, see ``mean_rates_after``; None: all alike.
    CPU frequencies are those of (SP1), hurried where the round's deadline asks for it.
    """
    device = np.arange(problem.num_devices) if may_upload is None else np.flatnonzero(may_upload)
    pairs = np.broadcast_arrays(device[:, None], np.arange(problem.num_blocks)[None, :])
    snr = snr_caps(problem, *pairs)[0]
    with np.errstate(over="ignore"):
        rate = problem.rate.efficiency * problem.bandwidth_hz * np.log2(1.0 + snr)
    best = float(rate.max(initial=0.0))
    past = np.zeros(device.size) if mean_rate_bps is None else _checked(problem, mean_rate_bps)[device]
    weight = rate / np.maximum(past, _NEVER_SERVED * best)[:, None] if best > 0.0 else rate
    if problem.access != "one-block":  # blocks are alike: the same devices, in equal shares or in turn
        ranked = device[by_score(weight.max(axis=1, initial=0.0))]
        most = problem.num_blocks if problem.max_uploads is None else problem.max_uploads
        served = equal_split(problem, ranked[: min(most, problem.num_blocks)])
        return allocation_of(problem, served, method="proportional-fair")
    row, block = assign_devices(weight, num_barred=problem.num_blocks - problem.most_uploads)
    chosen, reached = device[row], snr[row, block]
    power_w = reached * watts_per_snr(problem, chosen, block)
    return allocate_on_blocks(
        problem,
        method="proportional-fair",
        device=chosen,
        block=block,
        snr=reached,
        cpu=hurried(problem, solve_cpu_frequencies(problem), chosen, block, power_w),
        iterations=1,
    )


def mean_rates_after(mean_rate_bps: FloatArray, rate_bps: FloatArray) -> FloatArray:
    """Return the mean rates after a round: a moving average; ``rate_bps`` is NaN for who did not upload."""
    return mean_rate_bps + (np.nan_to_num(rate_bps) - mean_rate_bps) / WINDOW


def _checked(problem: AllocationProblem, mean_rate_bps: FloatArray) -> FloatArray:
    rates = np.asarray(mean_rate_bps, dtype=np.float64)
    if rates.shape != (problem.num_devices,) or not np.all(np.isfinite(rates) & (rates >= 0.0)):
        raise ProblemError(
            f"mean_rate_bps must be a finite rate >= 0 for each of the {problem.num_devices} devices, got "
            f"shape {rates.shape}. Leave it out where nothing is known."
        )
    return rates
