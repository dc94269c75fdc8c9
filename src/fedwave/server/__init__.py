"""What a server decides in a round: reports and channel in, plan and state out. Needs numpy and scipy alone.

Anybody's server can use it: make a planner, ask it who computes, hand it what they report, tell the devices
what the plan says, and tell the planner what became of it. ``fedwave.simulation`` does so with simulated
devices.
"""

from __future__ import annotations

from collections.abc import Callable

from fedwave.parts import PartKind
from fedwave.server.adaptive_steps import AdaptiveSteps
from fedwave.server.aims import ContributionScale, RoundAims, Work
from fedwave.server.audit import ContributionAudit
from fedwave.server.cell_planner import CellPlanner
from fedwave.server.eafl import Eafl
from fedwave.server.estimation import ESTIMATION, ESTIMATIONS, Estimation
from fedwave.server.local_steps import LocalSteps, StepsHeard
from fedwave.server.long_term import CappedRounds, ConstantPrices, DriftPlusPenalty, UntilSpent
from fedwave.server.outcome import BatteryReport, Hindsight, Outcome, RoundCosts, UploadLinks
from fedwave.server.plan import Plan
from fedwave.server.planner import Planner, PlannerAround, PlannerDefaults, PlannerState
from fedwave.server.policy_planner import PolicyPlanner
from fedwave.server.policy_runner import PolicyRunner
from fedwave.server.real_devices import CellReports
from fedwave.server.reports import Reports
from fedwave.server.round_problem import problem_of_cell, round_problem
from fedwave.server.sample_weights import SampleWeights
from fedwave.wireless.terms import RadioTerms

__all__ = [
    "ESTIMATION",
    "ESTIMATIONS",
    "LOCAL_STEPS",
    "PLANNER",
    "PLANNERS",
    "STEPS",
    "AdaptiveSteps",
    "BatteryReport",
    "CappedRounds",
    "CellPlanner",
    "CellReports",
    "ConstantPrices",
    "ContributionAudit",
    "ContributionScale",
    "DriftPlusPenalty",
    "Eafl",
    "Estimation",
    "Hindsight",
    "LocalSteps",
    "Outcome",
    "Plan",
    "Planner",
    "PlannerAround",
    "PlannerDefaults",
    "PlannerState",
    "PolicyPlanner",
    "PolicyRunner",
    "RadioTerms",
    "Reports",
    "RoundAims",
    "RoundCosts",
    "SampleWeights",
    "StepsHeard",
    "UntilSpent",
    "UploadLinks",
    "Work",
    "problem_of_cell",
    "round_problem",
]

# Each is called with the keyword ``planner``, the one that the settings describe, and with its own options.
PLANNERS: dict[str, Callable[..., Planner]] = {
    "auto": lambda planner: planner,
    "sample-weights": SampleWeights,
    "drift-plus-penalty": DriftPlusPenalty,
    "constant-prices": ConstantPrices,
    "capped-rounds": CappedRounds,
    "until-spent": UntilSpent,
    "eafl": Eafl,
}
PLANNER = PartKind("planner", PLANNERS, ("planner",))

# Each is called with those of the keywords below that it names, and with its own options.
LOCAL_STEPS: dict[str, Callable[..., LocalSteps]] = {"adaptive": AdaptiveSteps}
STEPS = PartKind(
    "choice of local steps", LOCAL_STEPS, ("num_local_steps", "step_size", "budget_s", "budget_j")
)
