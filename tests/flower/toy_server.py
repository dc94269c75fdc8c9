"""The server of six toy devices: plain NUFM on an ideal network."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from flwr.app import Array, ArrayRecord

from fedwave.flower import TwoPhase
from fedwave.learning.server_steps import ServerMean, ServerStep
from fedwave.selection import TopContribution
from fedwave.server import ContributionAudit, Plan, PlannerAround, PolicyPlanner, PolicyRunner
from fedwave.simulation.round import Federation
from fedwave.simulation.world import IdealWorld
from tests.flower.toy import META_LR, PENALTIES, SIZE, rounds_by_hand

N = 6


def first_model() -> np.ndarray:
    return np.linspace(-1, 1, SIZE, dtype=np.float32)


def first_arrays() -> ArrayRecord:
    return ArrayRecord({"w": Array(first_model())})


def strategy(
    num_devices: int,
    num_selected: int,
    *,
    audited: bool = True,
    server_step: ServerStep = ServerMean(),
    **options: Any,
) -> TwoPhase:
    runner = PolicyRunner(TopContribution(num_selected), np.ones(num_devices, dtype=np.int64), seed=0)
    federation = Federation(planner=PolicyPlanner(runner), world=IdealWorld(), server_step=server_step)
    audit = ContributionAudit(meta_lr=META_LR, **PENALTIES) if audited else None
    return TwoPhase(federation, num_devices=num_devices, audit=audit, **options)


def chosen_first(num_selected: int = 2) -> list[int]:
    """Return who is selected in the first round."""
    return rounds_by_hand(first_model(), 1, num_selected, present=list(range(N)))[1][0]


@dataclass(frozen=True, eq=False)
class Weighing(PlannerAround):
    """Weighs a device's model by its number."""

    def plan(self, *arguments: Any) -> Plan:
        plan = super().plan(*arguments)
        return replace(plan, weights=1.0 + plan.selected)
