"""What a server decides in a round: reports and channel in, plan and state out. Needs numpy and scipy alone.

Anybody's server can use it: make a planner, ask it who computes, hand it what they report, and tell the
devices what the plan says. ``fedwave.simulation`` does so with simulated devices.
"""

from fedwave.server.audit import ContributionAudit
from fedwave.server.cell_planner import CellPlanner
from fedwave.server.chooser import Chooser
from fedwave.server.contribution_scale import ContributionScale
from fedwave.server.plan import Plan
from fedwave.server.planner import Planner, PlannerState
from fedwave.server.policy_planner import PolicyPlanner
from fedwave.server.real_devices import CellReports
from fedwave.server.reports import Reports
from fedwave.server.round_problem import problem_of_cell, round_problem

__all__ = [
    "CellPlanner",
    "CellReports",
    "Chooser",
    "ContributionAudit",
    "ContributionScale",
    "Plan",
    "Planner",
    "PlannerState",
    "PolicyPlanner",
    "Reports",
    "problem_of_cell",
    "round_problem",
]
