"""The trade-off between energy and delay: the optimum of (P) for many weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fedwave.allocation.batch_solve import allocate_many
from fedwave.allocation.problem import AllocationProblem
from fedwave.allocation.solution import Allocation
from fedwave.errors import ProblemError, require_type
from fedwave.units import BoolArray, FloatArray, IntArray, real_array

DEFAULT_RATIOS = np.logspace(-2, 2, 17)  # eta_1 / eta_2 from a hundredth to a hundred times the problem's


@dataclass(frozen=True, kw_only=True, eq=False)
class ParetoFront:
    """One row per pair of weights, in the order given; all arrays have the same length."""

    energy_weight: FloatArray
    delay_weight: FloatArray
    energy_j: FloatArray
    delay_s: FloatArray
    contribution: FloatArray
    num_selected: IntArray
    allocations: tuple[Allocation, ...]

    @property
    def is_efficient(self) -> BoolArray:
        """Return which points no other beats in energy, delay and contribution at once.

        An exact optimum for positive weights is always efficient; points from a wide gap may not be.
        """
        cost = np.stack([self.energy_j, self.delay_s, -self.contribution], axis=1)
        no_worse = (cost[:, None, :] <= cost[None, :, :]).all(axis=2)
        better = (cost[:, None, :] < cost[None, :, :]).any(axis=2)
        return np.asarray(~(no_worse & better).any(axis=0))


def pareto_front(
    problem: AllocationProblem,
    weights: Sequence[float] | Sequence[tuple[float, float]] | FloatArray | None = None,
    *,
    relative_gap: float = 1e-6,
) -> ParetoFront:
    """Return energy, delay and contribution of the optimum of (P) for each of the weights.

    ``weights`` are pairs (energy_weight, delay_weight), or numbers r that multiply eta_1 / eta_2 of the
    problem while eta_1 eta_2 stays (so neither side merely grows dearer). Default: 17 numbers from 0.01
    to 100.
    """
    require_type(
        problem,
        AllocationProblem,
        name="problem",
        fix="Make one with AllocationProblem(...) or load_problem.",
    )
    wanted = DEFAULT_RATIOS if weights is None else real_array(weights, "weights")
    pairs = _weight_pairs(problem, wanted)
    stacked = {"energy_weight": pairs[:, 0], "delay_weight": pairs[:, 1]}
    allocations = tuple(allocate_many(problem, stacked=stacked, relative_gap=relative_gap))
    return ParetoFront(
        energy_weight=pairs[:, 0],
        delay_weight=pairs[:, 1],
        energy_j=np.array([found.energy_j for found in allocations]),
        delay_s=np.array([found.delay_s for found in allocations]),
        contribution=np.array([found.contribution for found in allocations]),
        num_selected=np.array([found.num_selected for found in allocations], dtype=np.int64),
        allocations=allocations,
    )


def _weight_pairs(problem: AllocationProblem, weights: FloatArray) -> FloatArray:
    if weights.ndim == 2 and weights.shape[1] == 2 and weights.shape[0] > 0:
        return weights
    if weights.ndim != 1 or weights.size == 0 or not (weights > 0).all():
        raise ProblemError(
            f"weights must be numbers > 0 or pairs (energy_weight, delay_weight), got shape {weights.shape}. "
            "For example weights=[0.1, 1, 10]."
        )
    if isinstance(problem.energy_weight, np.ndarray):
        raise ProblemError(
            "weights as ratios need one energy_weight in the problem, got one for each device. "
            "Give pairs (energy_weight, delay_weight)."
        )
    if problem.energy_weight == 0 or problem.delay_weight == 0:
        raise ProblemError(
            "weights as ratios need energy_weight > 0 and delay_weight > 0 in the problem, got 0. "
            "Give pairs (energy_weight, delay_weight)."
        )
    root = np.sqrt(weights)
    return np.stack([problem.energy_weight * root, problem.delay_weight / root], axis=1)
