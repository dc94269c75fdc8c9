"""Several guesses at the delay, the best kept: ``threshold`` takes each as it is, ``ives-multistart`` climbs.

A guess is an SNR that some share of the devices reaches at full power. Those who reach it get the blocks
where they are worth most, Theorem 3, and the common delay that suits them best, Theorem 4: that is one
iteration of Alg. 2. Twenty guesses of one iteration are the rule "everybody above a threshold", ten guesses
climbed to their fixed points are IVES without its bad start. Neither can say how far it is from the optimum.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from fedwave.allocation.access.rules import allocation_of, best_prefix
from fedwave.allocation.baselines.ives import climb
from fedwave.allocation.baselines.value_rate import by_score, value_rates
from fedwave.allocation.computing.cpu_frequency import solve_cpu_frequencies
from fedwave.allocation.optimal.candidates import candidate_pairs
from fedwave.allocation.problem import AllocationProblem
from fedwave.allocation.solution import Allocation, Status
from fedwave.allocation.uploads.pairs import PairTable
from fedwave.allocation.uploads.upload_plan import UploadPlan, finish
from fedwave.errors import ProblemError
from fedwave.units import BoolArray, FloatArray


def allocate_threshold(
    problem: AllocationProblem, *, num_thresholds: int = 20, may_upload: BoolArray | None = None
) -> Allocation:
    """Return the best matching over ``num_thresholds`` SNRs that its devices must reach.

    Where blocks are shared in another way, the threshold is on u times rate: see access/rules.py.
    """
    if problem.access != "one-block":
        if num_thresholds < 1:
            raise ProblemError(f"num_thresholds must be >= 1, got {num_thresholds}.")
        ranked = by_score(value_rates(problem, may_upload))
        return allocation_of(problem, best_prefix(problem, ranked, num_thresholds), method="threshold")
    plan = _best_of(problem, num_thresholds, "num_thresholds", max_iterations=1, may_upload=may_upload)
    return finish(problem, plan, solve_cpu_frequencies(problem), method="threshold", may_upload=may_upload)


def allocate_ives_multistart(
    problem: AllocationProblem,
    *,
    num_starts: int = 10,
    max_iterations: int = 100,
    may_upload: BoolArray | None = None,
) -> Allocation:
    """Return the best fixed point of Alg. 2 from ``num_starts`` delays."""
    if max_iterations < 1:
        raise ProblemError(f"max_iterations must be >= 1, got {max_iterations}.")
    plan = _best_of(problem, num_starts, "num_starts", max_iterations=max_iterations, may_upload=may_upload)
    cpu = solve_cpu_frequencies(problem)
    return finish(problem, plan, cpu, method="ives-multistart", may_upload=may_upload)


def _best_of(
    problem: AllocationProblem,
    num_starts: int,
    name: str,
    *,
    max_iterations: int,
    may_upload: BoolArray | None,
) -> UploadPlan:
    """Return the plan that is worth most; nobody uploads where all are worth less than nothing."""
    if num_starts < 1:
        raise ProblemError(f"{name} must be >= 1, got {num_starts}.")
    table = candidate_pairs(problem, may_upload=may_upload)
    tried = [climb(problem, table, float(snr), max_iterations) for snr in _starts(table, num_starts)]
    nobody = UploadPlan(
        table=table,
        matching=None,
        snr=0.0,
        value=0.0,
        upper_bound=math.inf,
        status=Status.FEASIBLE,
        num_matchings=0,
    )
    best = max([nobody, *tried], key=lambda plan: plan.value)
    num_matchings = sum(plan.num_matchings for plan in tried)
    return replace(best, status=Status.FEASIBLE, num_matchings=num_matchings, trace=())


def _starts(table: PairTable, count: int) -> FloatArray:
    """Return SNRs at evenly spaced ranks of those that the devices reach on their best blocks."""
    caps = table.snr_cap.max(axis=0, initial=0.0) if table.is_shared else table.snr_cap.ravel()
    caps = np.sort(caps[caps > 0.0])
    if caps.size == 0:
        return caps
    ranks = np.linspace(0, caps.size - 1, count).round().astype(np.int64)
    return np.unique(caps[ranks])
