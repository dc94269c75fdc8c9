"""Which devices upload: the contribution score and the policies that use it. Needs numpy alone."""

from __future__ import annotations

from collections.abc import Callable

from fedwave.parts import PartKind
from fedwave.selection.candidates import Candidates, History, RoundResult
from fedwave.selection.contribution import contribution, turning_point
from fedwave.selection.penalties import (
    CalibratedPenalties,
    EstimatedPenalties,
    FixedPenalties,
    Penalties,
    PenaltyRule,
)
from fedwave.selection.policy import DrawsCandidates, KeepsState, SelectionPolicy, require_enough_devices
from fedwave.selection.power_of_choice import PowerOfChoice
from fedwave.selection.round_robin import RoundRobin
from fedwave.selection.top_contribution import TopContribution
from fedwave.selection.uniform import Uniform

__all__ = [
    "PENALTIES",
    "PENALTY",
    "POLICIES",
    "POLICY",
    "CalibratedPenalties",
    "Candidates",
    "DrawsCandidates",
    "EstimatedPenalties",
    "FixedPenalties",
    "History",
    "KeepsState",
    "Penalties",
    "PenaltyRule",
    "PowerOfChoice",
    "RoundResult",
    "RoundRobin",
    "SelectionPolicy",
    "TopContribution",
    "Uniform",
    "contribution",
    "require_enough_devices",
    "turning_point",
]

# Each is called with num_selected and with options of its own, by keyword.
POLICIES: dict[str, Callable[..., SelectionPolicy]] = {
    "uniform": Uniform,
    "top-contribution": TopContribution,
    "power-of-choice": PowerOfChoice,
    "round-robin": RoundRobin,
}
POLICY = PartKind(
    "selection policy", POLICIES, fills_in=("num_selected", "needs_reports"), protocol=SelectionPolicy
)

# Where lambda_1 and lambda_2 of Eq. (21) come from.
PENALTIES: dict[str, Callable[..., PenaltyRule]] = {
    "fixed": FixedPenalties,
    "estimated": EstimatedPenalties,
    "calibrated": CalibratedPenalties,
}
PENALTY = PartKind("source of the penalties", PENALTIES)
