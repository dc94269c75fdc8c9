"""Planning over a radio cell: URAL (Alg. 3) and its rivals decide on blocks, powers and frequencies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from fedwave.allocation import Allocation, AllocationProblem, Status, allocate, find_method
from fedwave.allocation.baselines.proportional_fair import mean_rates_after
from fedwave.allocation.priced import solve_priced
from fedwave.errors import ConfigError, ProblemError
from fedwave.rng import Stream, generator
from fedwave.server.aims import RoundAims, Work
from fedwave.server.estimation import EXACT, Estimation
from fedwave.server.outcome import Outcome
from fedwave.server.plan import Plan
from fedwave.server.planner import MIN_KEPT_MODELS, PlannerState
from fedwave.server.policy_planner import PolicyPlanner
from fedwave.server.real_devices import CellReports
from fedwave.server.reports import Reports
from fedwave.server.round_problem import round_problem
from fedwave.units import BoolArray, FloatArray, IntArray
from fedwave.wireless.fleet import Fleet
from fedwave.wireless.sanity import units_were_said
from fedwave.wireless.terms import ChannelDraw, RadioTerms

MEAN_RATES = "mean_rate_bps"  # what each device had in earlier rounds


@dataclass(frozen=True, kw_only=True, eq=False)
class CellPlanner(PolicyPlanner):
    """A policy proposes devices, an allocation method serves them or chooses among them.

    With the policy ``top-contribution`` letting everybody through, a method that chooses by itself solves
    problem (P) as it stands: that is URAL. Methods that choose plan for what may keep an upload from arriving
    (``terms.risks``), the others run into it.
    """

    fleet: Fleet
    terms: RadioTerms
    aims: RoundAims
    work: Work
    method: str = "optimal"
    method_options: Mapping[str, Any] = field(default_factory=dict)
    estimation: Estimation = EXACT  # what it knows of the gains
    energy_prices: FloatArray | None = None  # of each device's joule [1/J]; None: aims.energy_weight for all

    def __post_init__(self) -> None:
        if not np.array_equal(self.runner.num_samples, self.work.num_samples):
            raise ProblemError(
                "the policy and the work must know of the same samples, got "
                f"{self.runner.num_samples.tolist()} and {self.work.num_samples.tolist()}. Give both one "
                "array."
            )

    @property
    def max_models(self) -> int:
        """Some more than can be chosen; all where blocks do not limit how many upload."""
        most = self.terms.num_blocks
        if self.terms.access in ("shared-band", "tdma"):
            most = self.runner.num_devices if self.terms.max_uploads is None else self.terms.max_uploads
        return max(4 * most, MIN_KEPT_MODELS)

    @property
    def num_blocks(self) -> int:
        """M of the cell."""
        return self.terms.num_blocks

    def initial_state(self) -> PlannerState:
        """Return an empty history; of rates, too, if the method looks back on them."""
        state = super().initial_state()
        if not find_method(self.method).looks_back:
            return state
        return {**state, MEAN_RATES: np.zeros(self.runner.num_devices)}

    def after(
        self, round_index: int, reports: Reports, plan: Plan, outcome: Outcome, state: PlannerState
    ) -> PlannerState:
        """Return the history with this round in it."""
        after = super().after(round_index, reports, plan, outcome, state)
        if MEAN_RATES not in state:
            return after
        rates = np.zeros(self.runner.num_devices)
        if outcome.costs is not None and outcome.costs.links is not None:
            rates = np.nan_to_num(outcome.costs.links.rate_bps)
        return {**after, MEAN_RATES: mean_rates_after(state[MEAN_RATES], rates)}

    def plan(
        self,
        round_index: int,
        asked: IntArray,
        reports: Reports,
        channel: ChannelDraw | None,
        state: PlannerState,
    ) -> Plan:
        """Return who uploads, on which block, at what power, and every device's CPU frequency."""
        if channel is None:
            raise ProblemError("planning over a cell needs the round's channel, got None. Pass its draw.")
        proposed = self.runner.select(round_index, asked, reports, state)
        seen = self.estimation.seen(
            self.terms.on_all_blocks(channel),
            rng=generator(self.runner.seed, Stream.ESTIMATION, round_index),
        )
        with units_were_said():  # by the cell, once for all rounds
            problem = self._problem(reports, seen)
            if self.energy_prices is not None:
                allocation = solve_priced(problem, self.energy_prices, selected=proposed).allocation
            else:
                allocation = allocate(
                    problem,
                    self.method,
                    rng=generator(self.runner.seed, Stream.ALLOCATION, round_index),
                    selected=proposed,
                    mean_rate_bps=state.get(MEAN_RATES),
                    **self.method_options,
                )
        return Plan(
            selected=allocation.selected,
            allocation=allocation,
            problem=problem,
            scaled_contribution=problem.contribution,
            needs_reports=self._needs_reports,
            reason=_reason(allocation),
        )

    def with_devices(
        self, *, present: IntArray, num_samples: IntArray, told: CellReports | None = None
    ) -> Self:
        """Return the planner that chooses among the devices present, with the limits that they reported."""
        return replace(
            self,
            runner=replace(self.runner, present=present, num_samples=num_samples),
            work=replace(self.work, num_samples=num_samples),
            fleet=self.fleet if told is None else told.fleet(self.fleet),
        )

    def with_prices(self, energy_prices: FloatArray) -> Self:
        """Return the planner that solves (P) with a price for each device's joule."""
        if self.method != "optimal":
            raise ConfigError(
                f'prices for each device need cell.method = "optimal", got "{self.method}". Only that solver '
                "knows them."
            )
        return replace(self, energy_prices=energy_prices)

    def describe(self) -> Mapping[str, Any]:
        """Return the method, the scale of the contributions and the size of an upload."""
        return {
            "method": self.method,
            "contribution_scale": self.aims.scale.kind,
            "contribution_constant": self.aims.scale.constant,
            "model_bits": self.work.model_bits,
        }

    @property
    def _needs_reports(self) -> bool:
        return self.runner.policy.needs_reports or not find_method(self.method).serves_given_devices

    def _problem(self, reports: Reports, channel: ChannelDraw) -> AllocationProblem:
        """Return problem (P) of this round; who does not compute has no work and no contribution."""
        computes: BoolArray = np.zeros(self.runner.num_devices, dtype=bool)
        computes[reports.device_index] = True
        contribution: FloatArray = np.zeros(self.runner.num_devices)
        contribution[reports.device_index] = self.aims.scale(reports.contribution)
        return round_problem(
            contribution=contribution,
            channel=channel,
            fleet=self.fleet,
            terms=self.terms,
            aims=self.aims,
            work=self.work.with_gradients(reports.num_gradients),
            computes=computes,
            needs_reports=self._needs_reports,
        )


def _reason(allocation: Allocation) -> str:
    """Return what a reader of the plan should know, or nothing."""
    if allocation.num_selected == 0:
        why = allocation.reason or "no upload is worth its energy and delay"
        return f"nobody uploads, the model stays as it is: {why}"
    if allocation.status is Status.LOST:
        return ""  # the method does not plan for that; the round's record says which uploads were lost
    return allocation.reason
