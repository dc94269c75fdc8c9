"""Planning over a radio cell: URAL (Alg. 3) and its rivals decide on blocks, powers and frequencies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fedwave.allocation import METHODS, Allocation, AllocationProblem, Status, allocate
from fedwave.errors import ProblemError
from fedwave.rng import Stream, generator
from fedwave.server.chooser import Chooser
from fedwave.server.contribution_scale import ContributionScale
from fedwave.server.plan import Plan
from fedwave.server.planner import PlannerState
from fedwave.server.reports import Reports
from fedwave.server.round_problem import (
    broadcast_delay_s,
    planned_risks,
    round_problem,
    round_workload_cycles,
)
from fedwave.units import BoolArray, FloatArray, IntArray
from fedwave.wireless.channel_draw import ChannelDraw
from fedwave.wireless.downlink import Downlink
from fedwave.wireless.fleet import Fleet
from fedwave.wireless.rate import RadioPower, RateModel
from fedwave.wireless.reporting import report_phase

MIN_KEPT_MODELS = 256  # any device may be chosen: keep the likeliest, the few others compute again
SHANNON, PLAIN = RateModel(), RadioPower()  # as in the paper


@dataclass(frozen=True, kw_only=True, eq=False)
class CellPlanner:
    """A policy proposes devices, an allocation method serves them or chooses among them.

    With the policy ``top-contribution`` letting everybody through, a method that chooses by itself solves
    problem (P) as it stands: that is URAL.
    """

    chooser: Chooser
    method: str
    fleet: Fleet
    num_blocks: int
    bandwidth_hz: float
    noise_psd_w_per_hz: float
    model_bits: float  # S
    num_local_steps: int  # tau
    energy_weight: float  # eta_1
    delay_weight: float  # eta_2
    scale: ContributionScale
    method_options: Mapping[str, Any] = field(default_factory=dict)
    max_delay_s: float | None = None  # hard limits that every method respects
    max_energy_j: float | None = None
    # What may keep an upload from arriving: methods that choose plan for it, the others run into it.
    deadline_s: float | None = None  # of the round
    outage_snr: float | None = None  # linear; an upload below is not decoded
    outage_margin: float = 1.0  # plan for a threshold higher by this factor
    packet_error_waterfall: float | None = None  # m of Chen et al.: error 1 - exp(-m / SNR)
    report_bits: float = 0.0
    rate: RateModel = SHANNON  # what the modem makes of an SNR
    radio: RadioPower = PLAIN  # what sending drains
    min_frequency_hz: FloatArray | float | None = None  # nu_min
    downlink: Downlink | None = None  # how the global model comes down; None: at no cost

    def __post_init__(self) -> None:
        if not 1.0 <= self.outage_margin < np.inf:
            raise ProblemError(
                f"outage_margin must be a factor >= 1, got {self.outage_margin:g}. Use 1 for no margin."
            )

    @property
    def max_models(self) -> int:
        """Some more than can be chosen."""
        return max(4 * self.num_blocks, MIN_KEPT_MODELS)

    def initial_state(self) -> PlannerState:
        """Return an empty history."""
        return self.chooser.initial_state()

    def ask(self, round_index: int, state: PlannerState) -> IntArray:
        """Return who computes."""
        return self.chooser.ask(round_index, state)

    def plan(
        self, round_index: int, reports: Reports, channel: ChannelDraw | None, state: PlannerState
    ) -> tuple[Plan, PlannerState]:
        """Return who uploads, on which block, at what power, and every device's CPU frequency."""
        if channel is None:
            raise ProblemError("planning over a cell needs the round's channel, got None. Pass its draw.")
        proposed = self.chooser.select(round_index, reports, state)
        problem = self._problem(reports, channel)
        allocation = self._allocate(round_index, problem, proposed)
        plan = Plan(
            selected=allocation.selected,
            allocation=allocation,
            scaled_contribution=problem.contribution,
            waits_for_reports=self._waits_for_reports,
            reason=_reason(allocation),
        )
        return plan, self.chooser.state_after(round_index, reports, plan.selected, state)

    @property
    def _waits_for_reports(self) -> bool:
        return self.chooser.policy.compares_reports or not METHODS[self.method].serves_given_devices

    def _problem(self, reports: Reports, channel: ChannelDraw) -> AllocationProblem:
        """Return problem (P) of this round; who does not compute has no work and no contribution."""
        computes: BoolArray = np.zeros(self.chooser.num_devices, dtype=bool)
        computes[reports.device_index] = True
        contribution: FloatArray = np.zeros(self.chooser.num_devices)
        contribution[reports.device_index] = self.scale(reports.contribution)
        return round_problem(
            contribution=contribution,
            channel=channel,
            fleet=self.fleet,
            workload_cycles=round_workload_cycles(
                self.fleet, self.chooser.num_samples, self.num_local_steps, computes
            ),
            bandwidth_hz=self.bandwidth_hz,
            noise_psd_w_per_hz=self.noise_psd_w_per_hz,
            model_bits=self.model_bits,
            energy_weight=self.energy_weight,
            delay_weight=self.delay_weight,
            max_delay_s=self.max_delay_s,
            max_energy_j=self.max_energy_j,
            rate=self.rate,
            radio=self.radio,
            min_frequency_hz=self.min_frequency_hz,
            **planned_risks(
                min_snr=(self.outage_snr or 0.0) * self.outage_margin,
                packet_error_waterfall=self.packet_error_waterfall,
                deadline_s=self.deadline_s,
                fixed_delay_s=self._fixed_delay_s(reports, channel),
            ),
        )

    def _allocate(self, round_index: int, problem: AllocationProblem, proposed: IntArray) -> Allocation:
        return allocate(
            problem,
            self.method,
            rng=generator(self.chooser.seed, Stream.ALLOCATION, round_index),
            selected=proposed,
            **self.method_options,
        )

    def _fixed_delay_s(self, reports: Reports, channel: ChannelDraw) -> float:
        """Return how long the broadcast takes, and the reports that must be in before anybody uploads."""
        if self.deadline_s is None:
            return 0.0
        broadcast_s = broadcast_delay_s(
            self.downlink, channel, listeners=reports.device_index, model_bits=self.model_bits
        )
        return broadcast_s + self._report_phase_s(reports, channel)

    def _report_phase_s(self, reports: Reports, channel: ChannelDraw) -> float:
        if not self._waits_for_reports:
            return 0.0
        _, phase_s = report_phase(
            self.fleet.max_power_w,
            channel,
            device_index=reports.device_index,
            report_bits=self.report_bits,
            bandwidth_hz=self.bandwidth_hz,
            noise_psd_w_per_hz=self.noise_psd_w_per_hz,
            rate_model=self.rate,
        )
        return phase_s


def _reason(allocation: Allocation) -> str:
    """Return what a reader of the plan should know, or nothing."""
    if allocation.num_selected == 0:
        why = allocation.reason or "no upload is worth its energy and delay"
        return f"nobody uploads, the model stays as it is: {why}"
    if allocation.status is Status.LOST:
        return ""  # the method does not plan for that; the round's record says which uploads were lost
    return allocation.reason
