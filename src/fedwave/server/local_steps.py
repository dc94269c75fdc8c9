"""What chooses the number of local steps, round by round, and what it hears of a round."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from fedwave.errors import ProblemError
from fedwave.server.outcome import Outcome
from fedwave.server.plan import Plan
from fedwave.server.planner import PlannerState
from fedwave.server.reports import Reports
from fedwave.units import FloatArray

NEXT_STEPS = "num_local_steps"  # tau of the next round in a state; 0: there is none, and the run ends


@dataclass(frozen=True, kw_only=True, eq=False)
class StepsHeard:
    """What became of a round with so many local steps."""

    num_local_steps: int  # tau of the round
    reports: Reports  # with rho_i and beta_i of everybody who computed
    plan: Plan
    outcome: Outcome
    gradient_divergence: FloatArray  # delta_i of those received, in their order


class LocalSteps(Protocol):
    """Chooses tau of every round; remembers nothing itself, as a planner does not.

    Its states are arrays by name, of the same names, shapes and types in all rounds. ``num_local_steps``, one
    whole number, is among them: tau of the next round. While such a part steers, every device computes one
    gradient more than it takes steps, at the model that it ends with: so rho_i and beta_i are measured.
    """

    def initial_state(self) -> PlannerState:
        """Return the state before the first round."""
        ...

    def after(self, heard: StepsHeard, state: PlannerState) -> PlannerState:
        """Return the state for the next round, given what became of this one."""
        ...


def next_steps(state: PlannerState) -> int:
    """Return tau of the next round; 0 ends the run."""
    found = state.get(NEXT_STEPS)
    if found is None or found.shape != (1,) or found.dtype != np.int64 or found[0] < 0:
        raise ProblemError(
            f"the state of local steps must hold {NEXT_STEPS} as one int64 >= 0, got {found}. Return it from "
            "initial_state and after."
        )
    return int(found[0])
