"""The server of the toy devices: plain NUFM on an ideal network."""

from __future__ import annotations

from typing import Any

import numpy as np
from flwr.app import Array, ArrayRecord

from fedwave.flower import TwoPhase
from fedwave.learning.server_steps.mean import ServerMean
from fedwave.selection import TopContribution
from fedwave.server import ContributionAudit, PolicyPlanner, PolicyRunner
from fedwave.simulation.round import Federation
from fedwave.simulation.world import IdealWorld
from tests.flower.toy import META_LR, PENALTIES, SIZE


def first_model() -> np.ndarray:
    return np.linspace(-1, 1, SIZE, dtype=np.float32)


def first_arrays() -> ArrayRecord:
    return ArrayRecord({"w": Array(first_model())})


def strategy(num_devices: int, num_selected: int, *, audited: bool = True, **options: Any) -> TwoPhase:
    runner = PolicyRunner(TopContribution(num_selected), np.ones(num_devices, dtype=np.int64), seed=0)
    federation = Federation(planner=PolicyPlanner(runner), world=IdealWorld(), server_step=ServerMean())
    audit = ContributionAudit(meta_lr=META_LR, **PENALTIES) if audited else None
    return TwoPhase(federation, num_devices=num_devices, audit=audit, **options)
