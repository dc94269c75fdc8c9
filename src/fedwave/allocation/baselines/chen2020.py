"""Chen et al. 2020 ("A joint learning and communications framework..."): Hungarian matching at full power.

Their server minimises the data lost to unselected users and packet errors, K_i (1 - a_i + a_i q_i), over
the blocks, under hard limits on each user's upload delay and energy. Simplified here: contributions u_i
stand for the data sizes K_i; power is fixed at its maximum (as in their public code) instead of lowered
to meet the energy limit; the energy limit counts the upload only; the downlink is left out, as everywhere
in this package.
"""

from __future__ import annotations

import logging
from functools import lru_cache

import numpy as np

from fedwave.allocation.baselines.on_blocks import allocate_on_blocks
from fedwave.allocation.computing.cpu_frequency import full_cpu_frequencies
from fedwave.allocation.optimal.dominance import undominated
from fedwave.allocation.problem import AllocationProblem
from fedwave.allocation.solution import Allocation
from fedwave.allocation.tolerance import LIMIT_TOLERANCE, exceeds
from fedwave.allocation.uploads.assignment import assign_devices
from fedwave.allocation.uploads.snr_range import own_deadline_s, watts_per_snr
from fedwave.errors import ProblemError
from fedwave.units import BoolArray, FloatArray, IntArray
from fedwave.wireless.link import upload_delay_s

# Their threshold m of the packet error rate q = 1 - exp(-m (I + B N0) / (p h)): 0.33 dB, as in their code;
# their paper prints 0.023 dB, which would be 1.005.
WATERFALL = 1.08


def allocate_chen2020(
    problem: AllocationProblem,
    *,
    max_delay_s: float | None = None,
    max_energy_j: float | None = None,
    waterfall_threshold: float | None = None,
    may_upload: BoolArray | None = None,
) -> Allocation:
    """Return Chen et al.'s allocation: the matching within the limits with the largest sum of u (1 - q).

    The limits are the problem's, tightened by ``max_delay_s`` and ``max_energy_j`` (theirs: 0.5 s, 0.003 J);
    without any, a warning says that this is not their method. CPUs run at full frequency, and power past
    where the modem's rate is capped is not spent. ``waterfall_threshold`` is the problem's by default, or
    else theirs; 0 switches packet errors off. The objective reported is that of (P).
    """
    if waterfall_threshold is None:
        waterfall_threshold = problem.waterfall or WATERFALL
    if not waterfall_threshold >= 0.0:
        raise ProblemError(
            f"waterfall_threshold must be >= 0, got {waterfall_threshold:g}. Use 0 for no errors."
        )
    limits = (max_delay_s, max_energy_j, problem.max_delay_s, problem.max_energy_j)
    if all(limit is None for limit in limits):
        _say_that_limits_are_missing()
    device = np.flatnonzero((problem.contribution > 0) & (problem.max_power_w > 0))
    if may_upload is not None:
        device = device[may_upload[device]]
    if not problem.is_frequency_selective and problem.num_blocks:
        device = device[undominated(_criteria(problem, device), problem.num_blocks)]
    block = np.arange(problem.num_blocks)
    weight = _weights(
        problem, device[:, None], block[None, :], max_delay_s, max_energy_j, waterfall_threshold
    )
    row, column = assign_devices(weight, num_barred=problem.num_blocks - problem.most_uploads)
    chosen, where = device[row], block[column]
    snr = _power_w(problem, chosen, where) / watts_per_snr(problem, chosen, where)
    return allocate_on_blocks(
        problem,
        method="chen2020",
        device=chosen,
        block=where,
        snr=snr,
        cpu=full_cpu_frequencies(problem),
        iterations=1,
    )


def _power_w(problem: AllocationProblem, device: IntArray, block: IntArray) -> FloatArray:
    """Return the full power of each pair, but no more than its rate, or the decoder, can make use of."""
    most = max(problem.rate.max_snr, problem.min_snr)
    with np.errstate(over="ignore"):
        return np.minimum(problem.max_power_w[device], most * watts_per_snr(problem, device, block))


@lru_cache(maxsize=1)
def _say_that_limits_are_missing() -> None:
    logging.getLogger("fedwave").warning(
        "chen2020 without max_delay_s and max_energy_j is not the method of its paper, which has 0.5 s and "
        "0.003 J: it matches at full power whatever that takes. Give one of them."
    )


def _criteria(problem: AllocationProblem, device: IntArray) -> tuple[FloatArray, ...]:
    """Return what makes a device at least as good as another on every block: u, h p, and frugality.

    At equal or better h p, a smaller power takes less energy. Keeps a million devices from filling an (n,
    M) matrix.
    """
    power = problem.max_power_w[device]
    criteria = [problem.contribution[device], problem.channel_gain[device] * power, -power]
    if problem.max_energy_j is not None:
        criteria.append(problem.energy_limit_of(device))
        if isinstance(problem.radio.circuit_power_w, np.ndarray):  # a thirstier circuit may break that limit
            criteria.append(-problem.radio.circuit_power_w[device])
    if isinstance(problem.max_delay_s, np.ndarray):
        criteria.append(problem.max_delay_s[device])
    return tuple(criteria)


def _weights(
    problem: AllocationProblem,
    device: IntArray,
    block: IntArray,
    max_delay_s: float | None,
    max_energy_j: float | None,
    waterfall_threshold: float,
) -> FloatArray:
    """Return u (1 - q) of every pair, (devices, M); 0 where full power breaks a limit."""
    device, block = np.broadcast_arrays(device, block)
    power = _power_w(problem, device, block)
    rate = problem.rate_bps_of(device, block, power)
    with np.errstate(over="ignore", invalid="ignore"):
        delay = upload_delay_s(rate, model_bits=problem.model_bits)
        energy = problem.upload_energy_j(device, power, delay)
    fits = (rate > 0) & ~exceeds(energy, problem.energy_limit_of(device))
    fits &= problem.snr_of(device, block, power) >= problem.min_snr * (1.0 - LIMIT_TOLERANCE)
    fits &= delay <= own_deadline_s(problem, device, share=1.0 + LIMIT_TOLERANCE)
    if max_delay_s is not None:
        fits &= ~exceeds(delay, max_delay_s)
    if max_energy_j is not None:
        fits &= ~exceeds(energy, max_energy_j)
    inverse_snr = np.divide(
        watts_per_snr(problem, device, block), power, out=np.zeros(power.shape), where=fits
    )
    with np.errstate(under="ignore"):
        success = np.exp(-waterfall_threshold * inverse_snr)
    return np.asarray(np.where(fits, problem.contribution[device] * success, 0.0))
