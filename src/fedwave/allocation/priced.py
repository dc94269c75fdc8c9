"""A plan at a price of a joule for each device, counted in the joules' own weight, with its certificate."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from fedwave.allocation.methods import allocate
from fedwave.allocation.problem import AllocationProblem
from fedwave.allocation.solution import Allocation, Status, build_allocation
from fedwave.errors import ProblemError
from fedwave.units import FloatArray, IntArray


@dataclass(frozen=True, kw_only=True, eq=False)
class PricedSolution:
    """A plan at given prices, what it is worth at them, and what no plan exceeds."""

    allocation: Allocation  # of the problem as given: its objective is that of energy_weight
    value: float  # U - sum a_i E_i - eta_2 T of it
    upper_bound: float  # certified: no feasible plan is worth more at these prices


def solve_priced(
    problem: AllocationProblem, prices: FloatArray, *, selected: IntArray | None = None
) -> PricedSolution:
    """Return the best plan at the prices a_i [1/J] in place of ``energy_weight``, with its certificate.

    ``selected`` are those that may upload; None: all.
    """
    prices = np.asarray(prices, dtype=np.float64)
    if prices.shape != (problem.num_devices,) or not (np.isfinite(prices) & (prices >= 0.0)).all():
        raise ProblemError(
            f"prices must be {problem.num_devices} finite numbers >= 0, one for each device, got shape "
            f"{prices.shape}. A negative price rewards wasting energy."
        )
    best = allocate(replace(problem, energy_weight=prices), "optimal", selected=selected)
    device, width = best.selected, best.bandwidth_of_device_hz
    in_own_weight = build_allocation(
        problem,
        method="optimal",
        device=device,
        block=best.block_of_device[device],
        power_w=best.transmit_power_w[device],
        cpu_frequency_hz=best.cpu_frequency_hz,
        status=best.status if best.status is Status.INFEASIBLE else Status.FEASIBLE,
        reason=best.reason,
        iterations=best.iterations,
        bandwidth_hz=None if width is None else width[device],
    )
    return PricedSolution(allocation=in_own_weight, value=best.objective, upper_bound=best.upper_bound)
