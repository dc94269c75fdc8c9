"""How many local steps are worth their cost: the bound of Wang et al. and its minimum over whole numbers.

S. Wang, T. Tuor, T. Salonidis, K. K. Leung, C. Makaya, T. He and K. Chan, "Adaptive Federated Learning in
Resource Constrained Edge Computing Systems", IEEE JSAC 37(6), 2019 (arXiv:1804.05271). Their eta is the step
size of a device (our beta, ``meta_lr``) and their beta the smoothness of its loss.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fedwave.errors import ProblemError
from fedwave.units import FloatArray

MIN_SMOOTHNESS = 1e-5  # beta is estimated: the authors' code takes no smaller one


@dataclass(frozen=True, kw_only=True)
class Landscape:
    """What is estimated of the loss, as means over devices."""

    loss_lipschitz: float  # rho
    smoothness: float  # beta
    gradient_divergence: float  # delta
    step_size: float  # eta


@dataclass(frozen=True, kw_only=True)
class Budget:
    """A resource of which a run has so much: what a local step takes of it, and what all else of a round."""

    total: float  # R
    step: float  # c, of a local step
    fixed: float  # b, of a round, whatever its number of local steps
    spent: float = 0.0  # so far

    def steps_left(self) -> float:
        """Return how many local steps a further round can have: the largest tau with b + c tau <= R - s."""
        room = self.total - self.spent - self.fixed
        if room < self.step:
            return 0.0
        return np.inf if self.step <= 0 else float(np.floor(room / self.step))


def drift(num_steps: int, landscape: Landscape) -> FloatArray:
    """Return h(1), ..., h(num_steps): how far local models drift from a central one, of their first theorem.

    h(tau) = (delta/beta) ((1 + eta beta)^tau - 1) - eta delta tau. With x = eta beta it is (delta/beta) r,
    where r(1) = 0 and r(tau + 1) = (1 + x) r(tau) + tau x^2: no term is taken away, so none cancels.
    """
    x = landscape.step_size * landscape.smoothness
    rest = np.zeros(num_steps)
    with np.errstate(over="ignore"):  # infinite: no such number of steps is wanted
        for tau in range(1, num_steps):
            rest[tau] = (1.0 + x) * rest[tau - 1] + tau * x * x
        delta = landscape.gradient_divergence
        return rest * (delta / landscape.smoothness) if delta > 0 else np.zeros(num_steps)


def steps_in_budget(num_steps: int, budgets: Sequence[Budget]) -> FloatArray:
    """Return T'(1), ..., T'(num_steps): local steps of a whole run with tau a round, their Sec. V.

    T' = min over resources of (R - b - c) tau / (c tau + b).
    """
    tau = np.arange(1.0, num_steps + 1.0)
    found = np.full(num_steps, np.inf)
    for one in budgets:
        cost = one.step * tau + one.fixed
        within = np.divide((one.total - one.fixed - one.step) * tau, cost, out=found.copy(), where=cost > 0)
        found = np.minimum(found, within)
    return found


def control_bound(
    num_steps: int, landscape: Landscape, budgets: Sequence[Budget], *, phi: float
) -> FloatArray:
    """Return G(1), ..., G(num_steps), the bound on the loss at the end of a run, their Sec. V.

    G = (1 + sqrt(1 + 4 eta phi T'^2 rho h / tau)) / (2 eta phi T') + rho h; infinite where T' <= 0. It is
    written with a = 1 / (2 eta phi T') as a + sqrt(a^2 + rho h / (eta phi tau)) + rho h.
    """
    tau = np.arange(1.0, num_steps + 1.0)
    within = steps_in_budget(num_steps, budgets)
    has_room = within > 0
    rise = landscape.loss_lipschitz * drift(num_steps, landscape)
    gain = landscape.step_size * phi
    with np.errstate(over="ignore"):
        a = 0.5 / (gain * np.where(has_room, within, 1.0))
        found = a + np.sqrt(a * a + rise / (gain * tau)) + rise
    return np.where(has_room, found, np.inf)


def best_num_steps(
    max_steps: int, landscape: Landscape, budgets: Sequence[Budget], *, phi: float
) -> tuple[int, float]:
    """Return the tau in 1, ..., ``max_steps`` with the least G, the smallest of several, and that G."""
    if max_steps < 1:
        raise ProblemError(f"max_steps must be >= 1, got {max_steps}. A round has at least one local step.")
    bound = control_bound(max_steps, landscape, budgets, phi=phi)
    at = int(np.argmin(bound))
    return at + 1, float(bound[at])
