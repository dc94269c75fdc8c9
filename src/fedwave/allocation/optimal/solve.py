"""The certified optimum of (P): CPU frequencies in closed form, uploads by branch and bound."""

from __future__ import annotations

from typing import Any

from fedwave.allocation.access.solve import allocate_by_access
from fedwave.allocation.computing.cpu_frequency import compute_cost, solve_cpu_frequencies
from fedwave.allocation.optimal.candidates import candidate_pairs, useful_devices
from fedwave.allocation.optimal.column_generation import ColumnGeneration
from fedwave.allocation.optimal.compiled_search import compiled_plan
from fedwave.allocation.optimal.curved_generation import CurvedGeneration
from fedwave.allocation.optimal.search import BranchAndBound
from fedwave.allocation.optimal.total_energy import allocate_within_total_energy
from fedwave.allocation.problem import AllocationProblem
from fedwave.allocation.solution import Allocation
from fedwave.allocation.uploads.faster_uploads import may_be_faster
from fedwave.allocation.uploads.pairs import pair_table
from fedwave.allocation.uploads.upload_plan import finish
from fedwave.errors import ProblemError
from fedwave.units import BoolArray

_FEW_PAIRS = 100_000  # up to here looking at all of them is quicker
_FEW_PER_BLOCK = 8  # devices left after pruning, likewise


def allocate_optimal(
    problem: AllocationProblem,
    *,
    relative_gap: float = 1e-6,
    max_matchings: int = 10_000,
    may_upload: BoolArray | None = None,
) -> Allocation:
    """Return an allocation that is proven optimal for (P) within ``relative_gap``.

    ``may_upload`` restricts who may get a block. The search stops after ``max_matchings``, or
    twice as many steps, with status LIMIT and the gap proven so far. In other accesses than one-block it
    counts knapsacks (blocks) or nodes of the search.
    """
    if not 0.0 <= relative_gap < 1.0:
        raise ProblemError(f"relative_gap must be >= 0 and < 1, got {relative_gap:g}. The default is 1e-6.")
    if problem.access != "one-block":
        return allocate_by_access(
            problem, relative_gap=relative_gap, max_steps=max_matchings, may_upload=may_upload
        )
    if problem.max_total_energy_j is not None:

        def solve(part: AllocationProblem) -> Allocation:
            return allocate_optimal(
                part, relative_gap=0.1 * relative_gap, max_matchings=max_matchings, may_upload=may_upload
            )

        return allocate_within_total_energy(
            problem, solve, relative_gap=relative_gap, max_matchings=max_matchings
        )
    cpu = solve_cpu_frequencies(problem)
    limits: dict[str, Any] = {
        "relative_gap": relative_gap,
        "compute_cost": compute_cost(problem, cpu.cpu_frequency_hz),
        "max_matchings": max_matchings,
    }
    search = _search(problem, may_upload)
    plan = compiled_plan(problem, search.whole_table, **limits) or search.run(**limits)
    return finish(problem, plan, cpu, method="optimal", may_upload=may_upload)


def _search(problem: AllocationProblem, may_upload: BoolArray | None) -> BranchAndBound:
    """Return the search that suits: on all pairs that may be needed, or, if many, by column generation."""
    is_limited = problem.most_uploads < problem.num_blocks  # column generation prices blocks, not uploads
    if is_limited or problem.num_devices * problem.num_blocks <= _FEW_PAIRS:
        return BranchAndBound(problem, candidate_pairs(problem, may_upload=may_upload))
    device = useful_devices(problem, may_upload)
    if device.size <= _FEW_PER_BLOCK * problem.num_blocks:
        return BranchAndBound(problem, pair_table(problem, device[None, :]))
    return (CurvedGeneration if may_be_faster(problem) else ColumnGeneration)(problem, device)
