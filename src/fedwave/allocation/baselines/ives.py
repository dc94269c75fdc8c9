"""IVES, Alg. 2: alternate between blocks at a given delay (Theorem 3) and powers at given blocks (Theorem 4).

It climbs to a fixed point, which need not be the optimum: started from the slowest device's delay, as
printed, it often keeps devices that can hardly transmit. It is the start that fails, not the idea: the method
``ives-multistart`` climbs from several delays and comes close to the optimum, though it cannot say how close.
"""

from __future__ import annotations

import math

import numpy as np

from fedwave.allocation.computing.cpu_frequency import solve_cpu_frequencies
from fedwave.allocation.optimal.candidates import candidate_pairs
from fedwave.allocation.problem import AllocationProblem
from fedwave.allocation.solution import Allocation, Status
from fedwave.allocation.uploads.assignment import Matching, best_matching
from fedwave.allocation.uploads.delay_cost import DelayCost
from fedwave.allocation.uploads.pairs import PairTable, all_pairs
from fedwave.allocation.uploads.power import LARGEST_SNR, energy_factor, snr_of_delay
from fedwave.allocation.uploads.snr_range import snr_cap, snr_floor
from fedwave.allocation.uploads.upload_plan import UploadPlan, finish, value_at_best_snr
from fedwave.errors import FedwaveError, ProblemError
from fedwave.units import BoolArray

_ROUNDING = 1e-9  # relative fall of the objective that rounding may cause; Theorem 5 forbids any other
_DENSE_PAIRS = (
    2_000_000  # up to here all pairs are kept as Alg. 2 does; above, exact pruning changes no value
)


def allocate_ives(
    problem: AllocationProblem,
    *,
    start: float | None = None,
    max_iterations: int = 100,
    keep_negative: bool = False,
    may_upload: BoolArray | None = None,
) -> Allocation:
    """Return the fixed point of Alg. 2 from the delay ``start`` in seconds, by default Eq. (50).

    Eq. (50) leaves the block free; we take the worst one, so that every device that can transmit is
    feasible at first. A fixed point worth less than nobody uploading becomes the empty selection unless
    ``keep_negative`` (then Alg. 2 is exactly as printed). ``trace`` holds the objective after each
    iteration: Theorem 5 says that it never falls, and this is checked on every run.
    """
    if start is not None and not start > 0.0:
        raise ProblemError(f"start must be a delay > 0 in seconds, got {start:g}.")
    if max_iterations < 1:
        raise ProblemError(f"max_iterations must be >= 1, got {max_iterations}.")
    cpu = solve_cpu_frequencies(problem)
    is_small = problem.num_devices * problem.num_blocks <= _DENSE_PAIRS
    table = (all_pairs if is_small else candidate_pairs)(problem, may_upload=may_upload)
    first_snr = _first_snr(problem, start, may_upload)
    plan = climb(problem, table, first_snr, max_iterations)
    if plan.value < 0.0 and not keep_negative:
        plan = UploadPlan(
            table=table,
            matching=None,
            snr=0.0,
            value=0.0,
            upper_bound=math.inf,
            status=plan.status,
            num_matchings=plan.num_matchings,
            trace=plan.trace,
            reason=f"the fixed point is worth {plan.value:.4g} in (SP2), less than nobody uploading",
        )
    return finish(problem, plan, cpu, method="ives", may_upload=may_upload)


def climb(problem: AllocationProblem, table: PairTable, first_snr: float, max_iterations: int) -> UploadPlan:
    """Return where Alg. 2 ends from the delay of an SNR, or after so many iterations."""
    floor, delay = snr_floor(problem), DelayCost.of(problem)
    snr = max(first_snr, floor)
    found: Matching | None = None
    found_snr = value = 0.0
    trace: list[float] = []
    status = Status.LIMIT
    for _ in range(max_iterations):
        matching = best_matching(  # Alg. 2, line 3; a tangent is exact where it touches
            table.tangent(snr), energy_factor=energy_factor(snr), smallest_cap=snr
        )
        if matching.row.size == 0:
            trace.append(0.0)
            new_snr, new_value = snr, 0.0
        else:
            new_snr, new_value = value_at_best_snr(table, matching, delay, snr_floor=floor)  # Alg. 2, line 4
            trace.append(new_value)
        if len(trace) > 1:
            _check_theorem_5(trace[-2], trace[-1], matching)
            if new_value <= value:  # nothing gained: a fixed point
                status = Status.CONVERGED
                break
        found, value = (matching if matching.row.size else None), new_value
        found_snr = new_snr if matching.row.size else 0.0
        if new_snr == snr:
            status = Status.CONVERGED
            break
        snr = new_snr  # Alg. 2, line 5
    return UploadPlan(
        table=table,
        matching=found,
        snr=found_snr,
        value=value,
        upper_bound=math.inf,
        status=status,
        num_matchings=len(trace),
        trace=tuple(trace),
    )


def _first_snr(problem: AllocationProblem, start: float | None, may_upload: BoolArray | None) -> float:
    """Return the SNR of the first delay, Eq. (50): that of the weakest device on its worst block."""
    if start is not None:
        return min(snr_of_delay(start, nat_delay_s=problem.nat_delay_s), LARGEST_SNR)
    device = np.arange(problem.num_devices) if may_upload is None else np.flatnonzero(may_upload)
    blocks = np.arange(problem.num_blocks)
    if not problem.is_frequency_selective and blocks.size:
        blocks = np.array([np.argmax(problem.block_noise_w)])  # the worst block is the same for all
    weakest = LARGEST_SNR
    for block in blocks:
        cap = snr_cap(problem, device, np.asarray(block))
        weakest = min(weakest, float(cap.min(initial=LARGEST_SNR, where=cap > 0)))
    return weakest


def _check_theorem_5(before: float, after: float, matching: Matching) -> None:
    if after < before - _ROUNDING * (abs(before) + matching.contribution):
        raise FedwaveError(
            f"IVES lowered its objective from {before!r} to {after!r}, which Theorem 5 rules out. "
            "This is a bug in fedwave; please report the problem data."
        )
