"""Local steps chosen in every round under a budget of seconds or joules, after Wang et al. 2019.

What differs from their Algorithms 2 and 3 is said in docs/local-steps.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedwave.errors import ConfigError, ProblemError
from fedwave.server.local_steps import NEXT_STEPS, StepsHeard
from fedwave.server.outcome import Outcome
from fedwave.server.planner import PlannerState
from fedwave.server.steps_bound import MIN_SMOOTHNESS, Budget, Landscape, best_num_steps, control_bound, drift
from fedwave.units import FloatArray

ESTIMATES = ("loss_lipschitz", "smoothness", "gradient_divergence")  # rho, beta, delta
SPENT_S, SPENT_J = "spent_s", "spent_j"


@dataclass(frozen=True, kw_only=True, eq=False)
class AdaptiveSteps:
    """Takes the tau with the least bound G(tau) on the final loss, given what the last round cost.

    Begins with ``num_local_steps``. Searches up to ``growth`` times the last tau and ``max_steps``. A tau
    that no longer fits into what is left of a budget is lowered until it does; with none that fits the run
    ends, before it overspends.
    """

    num_local_steps: int  # tau of the first round
    step_size: float  # eta: meta_lr
    budget_s: float | None = None  # seconds of the whole run: stop.time_s
    budget_j: float | None = None  # joules of all devices: stop.energy_j
    phi: float = 5e-5  # the authors' for a CNN; 0.025 for their convex losses
    growth: int = 10
    max_steps: int = 100
    smoothing: float = 0.0  # weight of the estimates before in those after a round

    def __post_init__(self) -> None:
        if self.budget_s is None and self.budget_j is None:
            raise ConfigError(
                "adaptive local steps need a budget, got none. Set stop.time_s or stop.energy_j, over a cell."
            )
        is_fit = self.phi > 0 and self.growth >= 1 and self.max_steps >= 1 and 0 <= self.smoothing < 1
        if not is_fit:
            raise ConfigError(
                "adaptive local steps need phi > 0, growth >= 1, max_steps >= 1 and 0 <= smoothing < 1, got "
                f"{self.phi:g}, {self.growth}, {self.max_steps} and {self.smoothing:g}. Change what is not."
            )
        if not 1 <= self.num_local_steps <= self.max_steps:
            raise ConfigError(
                f"algorithm.num_local_steps, tau of the first round, must be within max_steps = "
                f"{self.max_steps}, got {self.num_local_steps}. Raise max_steps."
            )

    def initial_state(self) -> PlannerState:
        """Return that nothing is known or spent."""
        unknown = dict.fromkeys((*ESTIMATES, "drift_bound", "control_bound"), np.nan)
        return _state(self.num_local_steps, {**unknown, SPENT_S: 0.0, SPENT_J: 0.0})

    def after(self, heard: StepsHeard, state: PlannerState) -> PlannerState:
        """Return the estimates with this round in them, and the tau that they ask for."""
        estimates = self._estimates(heard, state)
        budgets, spent = self._budgets(heard, state)
        landscape = Landscape(
            loss_lipschitz=estimates["loss_lipschitz"],
            smoothness=max(estimates["smoothness"], MIN_SMOOTHNESS),
            gradient_divergence=estimates["gradient_divergence"],
            step_size=self.step_size,
        )
        tau = heard.num_local_steps
        is_known = not any(np.isnan(list(estimates.values())))  # else nobody has arrived yet
        if is_known:
            window = min(self.growth * tau, self.max_steps)
            tau, _ = best_num_steps(window, landscape, budgets, phi=self.phi)
        tau = int(min(tau, *(one.steps_left() for one in budgets)))
        shown = dict.fromkeys(("drift_bound", "control_bound"), np.nan)
        if is_known and tau:
            bound = control_bound(tau, landscape, budgets, phi=self.phi)
            shown = {"drift_bound": drift(tau, landscape)[-1], "control_bound": bound[-1]}
        return _state(tau, {**estimates, **shown, **spent})

    def _estimates(self, heard: StepsHeard, state: PlannerState) -> dict[str, float]:
        """Return rho, beta and delta: means over those that arrived, weighted as their models are."""
        before = {name: float(state[name][0]) for name in ESTIMATES}
        received, reports = heard.outcome.received, heard.reports
        if len(received) == 0:
            return before
        if reports.loss_lipschitz is None or reports.smoothness is None:
            raise ProblemError(
                "adaptive local steps need every device's loss_lipschitz and smoothness, got none. Let it "
                "measure them: LocalWork(measures_curvature=True)."
            )
        rows = np.searchsorted(reports.device_index, received)
        columns = (reports.loss_lipschitz[rows], reports.smoothness[rows], heard.gradient_divergence)
        weights = heard.plan.weights_of(received)
        new = {
            name: float(np.average(values, weights=weights))
            for name, values in zip(ESTIMATES, columns, strict=True)
        }
        keep = self.smoothing
        return {
            name: value if np.isnan(before[name]) else keep * before[name] + (1.0 - keep) * value
            for name, value in new.items()
        }

    def _budgets(self, heard: StepsHeard, state: PlannerState) -> tuple[list[Budget], dict[str, float]]:
        """Return each resource with what the round took of it, and all that is spent so far."""
        time_s, energy_j = round_costs_of(heard.outcome, float(state[SPENT_S][0]))
        steps_s, steps_j = step_costs_of(heard)
        spent = {SPENT_S: float(state[SPENT_S][0]) + time_s, SPENT_J: float(state[SPENT_J][0]) + energy_j}
        tau = heard.num_local_steps
        all_of_them = (
            (self.budget_s, steps_s, time_s, spent[SPENT_S]),
            (self.budget_j, steps_j, energy_j, spent[SPENT_J]),
        )
        budgets = [
            Budget(total=total, step=step, fixed=max(whole - tau * step, 0.0), spent=so_far)
            for total, step, whole, so_far in all_of_them
            if total is not None
        ]
        return budgets, spent


def round_costs_of(outcome: Outcome, clock_s: float) -> tuple[float, float]:
    """Return the seconds and joules of a round; with batteries the pause after it counts, as stop counts."""
    costs = outcome.costs
    if costs is None:
        raise ProblemError(
            "adaptive local steps need to hear what a round cost, got nothing. Use a cell's world."
        )
    time_s = costs.delay_s if outcome.battery is None else outcome.battery.clock_s - clock_s
    return time_s, costs.energy_j


def step_costs_of(heard: StepsHeard) -> tuple[float, float]:
    """Return the seconds and joules of one local step: the round's computing, over the gradients computed."""
    costs, num_gradients = heard.outcome.costs, heard.reports.num_gradients
    if costs is None or num_gradients is None:
        raise ProblemError(
            "adaptive local steps need to hear what computing cost, got nothing. Use a cell's world."
        )
    compute_s = float(costs.compute_time_s.max(initial=0.0))
    return compute_s / num_gradients, float(costs.compute_energy_j.sum()) / num_gradients


def _state(num_local_steps: int, values: Mapping[str, float | FloatArray]) -> PlannerState:
    first: dict[str, NDArray[Any]] = {NEXT_STEPS: np.array([num_local_steps], dtype=np.int64)}
    return first | {name: np.array([value], dtype=np.float64) for name, value in values.items()}
