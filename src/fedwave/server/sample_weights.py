"""A planner whose models weigh by samples, as in FedAvg, around the one that the settings describe."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from fedwave.server.plan import Plan
from fedwave.server.planner import PlannerAround, PlannerState
from fedwave.server.reports import Reports
from fedwave.units import IntArray
from fedwave.wireless.terms import ChannelDraw


@dataclass(frozen=True, eq=False)
class SampleWeights(PlannerAround):
    """Weighs every model by its device's samples D_i; the paper's Eq. (6) is the plain mean."""

    def plan(
        self,
        round_index: int,
        asked: IntArray,
        reports: Reports,
        channel: ChannelDraw | None,
        state: PlannerState,
    ) -> Plan:
        """Return the inner planner's plan with these weights."""
        plan = super().plan(round_index, asked, reports, channel, state)
        rows = np.searchsorted(reports.device_index, plan.selected)
        return replace(plan, weights=reports.num_samples[rows].astype(np.float64))
