"""Who uploads, planned with what the devices told: one that spoils the plan of all is left out of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fedwave.allocation import Status
from fedwave.errors import ProblemError
from fedwave.flower.message_log import MessageLog
from fedwave.server import CellReports, Plan, Planner, PlannerAround, Reports
from fedwave.simulation.facts import RoundFacts
from fedwave.simulation.round import Federation, decide_round
from fedwave.simulation.state import State
from fedwave.units import IntArray
from fedwave.wireless.terms import ChannelDraw

PLAN_ERRORS = (ProblemError, ArithmeticError, ValueError)  # what numbers can do to a planner and a solver


@dataclass(frozen=True, kw_only=True, eq=False)
class Told:
    """What came of phase 1, and what the server knows itself."""

    reports: Reports
    radios: CellReports | None  # of those that told of one
    channel: ChannelDraw | None  # that the server's own world has; None: it knows none
    present: IntArray
    num_samples: IntArray  # of every place

    def of(self, devices: IntArray) -> Told:
        """Return what these devices told, as if nobody else had reported."""
        radios = None if self.radios is None else self.radios.of(devices)
        return replace(self, reports=self.reports.of(devices), radios=radios)

    def channel_of_round(self) -> ChannelDraw | None:
        """Return the channel as devices measured it, and as the server knows it of the others."""
        if self.radios is None:
            return self.channel
        return self.radios.channel(len(self.num_samples), self.channel)


@dataclass(frozen=True, eq=False)
class AmongReported(PlannerAround):
    """A planner whose plan keeps to those that reported: no other has a model to send."""

    absent: Callable[[int], None] = print  # hears of each device that the plan names and nobody is

    def plan(self, round_index: int, asked: IntArray, reports: Reports, *known: Any) -> Plan:
        """Return the inner planner's plan without the absent."""
        plan = super().plan(round_index, asked, reports, *known)
        is_here = np.isin(plan.selected, reports.device_index)
        if is_here.all():
            return plan
        for device in plan.selected[~is_here].tolist():
            self.absent(device)
        weights = None if plan.weights is None else np.asarray(plan.weights)[is_here]
        return replace(plan, selected=plan.selected[is_here], weights=weights)


def plan_round(
    federation: Federation,
    state: State,
    asked: IntArray,
    told: Told,
    *,
    absent: Callable[[int], None],
    message_log: MessageLog,
) -> tuple[Planner, RoundFacts] | None:
    """Return who uploads and how, and the planner that says so; None, and the log says why, without a plan.

    If the plan of all fails, each device is tried alone: those whose own numbers allow no plan are left out.
    """

    def attempt(some: Told) -> tuple[Planner, RoundFacts]:
        planner = federation.planner.with_devices(
            present=some.present, num_samples=some.num_samples, told=some.radios
        )
        among = replace(federation, planner=AmongReported(planner, absent))
        return planner, decide_round(among, state, asked, some.reports, some.channel_of_round())

    def fault_of(some: Told) -> str:
        try:
            return _infeasible(attempt(some)[1].plan)
        except PLAN_ERRORS as error:
            return str(error)

    devices = told.reports.device_index
    fault = fault_of(told)
    if fault and len(devices) > 1:
        fault_alone = {device: fault_of(told.of(np.array([device]))) for device in devices.tolist()}
        sound = np.array([device for device in devices.tolist() if not fault_alone[device]], dtype=np.int64)
        if 0 < len(sound) < len(devices):
            for device in sorted(set(devices.tolist()) - set(sound.tolist())):
                message_log.leave_out(device, fault_alone[device])
            told = told.of(sound)
    try:
        return attempt(told)
    except PLAN_ERRORS as error:
        message_log.skip(f"no plan can be made of what the devices told: {error}")
        return None


def _infeasible(plan: Plan) -> str:
    """Return why nobody can upload; nothing if somebody can, or nobody need."""
    allocation = plan.allocation
    if allocation is None or len(plan.selected) or allocation.status is not Status.INFEASIBLE:
        return ""
    return plan.reason
