"""Planners that look further than a round: each device has joules to live on, and its joules have a price.

All of them stand around the planner of a cell. What they know of a device is what the world reported: the
joules of every phase, listening and computing included, and the charge of its battery if it has one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from fedwave.errors import ConfigError, ProblemError
from fedwave.server.cell_planner import CellPlanner
from fedwave.server.outcome import Outcome
from fedwave.server.plan import Plan
from fedwave.server.planner import PlannerAround, PlannerState
from fedwave.server.reports import Reports
from fedwave.units import FloatArray, IntArray
from fedwave.wireless.terms import ChannelDraw

QUEUE, SPENT, ASKED_J, VALUE = "queue_j", "spent_j", "asked_energy_j", "mean_value"
CHARGE, CAPACITY = "heard_charge_j", "heard_capacity_j"
PRICE = "price_per_j"  # a plan's column: what a joule of each device cost in the round
NEWEST = 0.3  # weight of the newest value in what is remembered of a device


@dataclass(frozen=True, eq=False)
class OverACell(PlannerAround):
    """A planner around that of a cell, which hears what every device spends; a subclass says how it plans."""

    def __post_init__(self) -> None:
        if not isinstance(self.planner, CellPlanner):
            raise ConfigError(
                f"{type(self).__name__} needs a cell, got a planner without one. Set cell.preset."
            )

    @property
    def cell_planner(self) -> CellPlanner:
        """The planner of the cell."""
        assert isinstance(self.planner, CellPlanner)
        return self.planner

    @property
    def num_devices(self) -> int:
        """Number of devices n."""
        return self.cell_planner.runner.num_devices

    def initial_state(self) -> PlannerState:
        """Return the inner planner's state and that nobody has spent anything."""
        return {**super().initial_state(), SPENT: np.zeros(self.num_devices)}

    def round_planner(self, round_index: int, state: PlannerState) -> CellPlanner:
        """Return the cell's planner with this round's prices or limits: by default as it is."""
        del round_index, state
        return self.cell_planner

    def plan(
        self,
        round_index: int,
        asked: IntArray,
        reports: Reports,
        channel: ChannelDraw | None,
        state: PlannerState,
    ) -> Plan:
        """Return the cell's plan at this round's prices or limits, and what they were."""
        planner = self.round_planner(round_index, state)
        plan = planner.plan(round_index, asked, reports, channel, state)
        prices = {} if planner.energy_prices is None else {PRICE: planner.energy_prices}
        return replace(plan, columns={**plan.columns, **prices, **self.columns(state)})

    def columns(self, state: PlannerState) -> Mapping[str, FloatArray]:
        """Return what the table of devices is to say of this planner, beside its prices: nothing."""
        del state
        return {}

    def after(
        self, round_index: int, reports: Reports, plan: Plan, outcome: Outcome, state: PlannerState
    ) -> PlannerState:
        """Return the state with this round's joules in it."""
        after = super().after(round_index, reports, plan, outcome, state)
        return {**after, SPENT: state[SPENT] + spent_j(outcome)}


def spent_j(outcome: Outcome) -> FloatArray:
    """Return what every device spent in a round, all phases together."""
    if outcome.costs is None:
        raise ProblemError(
            "long-term planners need to hear what a round cost, got nothing. Use a cell's world."
        )
    return outcome.costs.device_energy_j


def heard_batteries(outcome: Outcome, state: PlannerState) -> PlannerState:
    """Return the batteries as the world last told of them."""
    battery = outcome.battery
    if battery is None:
        return {CHARGE: state[CHARGE], CAPACITY: state[CAPACITY]}
    return {CHARGE: battery.charge_j, CAPACITY: battery.capacity_j}


def _mean_after(mean: FloatArray, new: FloatArray) -> FloatArray:
    """Return running means with one more value each; the first one stands by itself."""
    return np.where(np.isnan(mean), new, (1.0 - NEWEST) * np.nan_to_num(mean) + NEWEST * new)


@dataclass(frozen=True, eq=False)
class DriftPlusPenalty(OverACell):
    """Prices a joule of device i at eta_1 + Q_i / V, where Q_i is what it has spent beyond its budget so far.

    Q_i <- max(Q_i + E_i - budget_j, 0). One knob: a larger V keeps utility and lets devices overdraw longer.
    With ``by = "battery"`` the price is eta_1 + (capacity - charge) / V, as last heard; before the first
    round batteries are taken for full. Whom it asks is a decision, too: those whose contributions have been
    worth their joules at the price, and those that it has never heard of. ``frame`` resets the queues every
    so many rounds and ``growth`` lets later rounds of a frame weigh more, as OCEAN does (Xu and Wang 2020).
    """

    budget_j: float = 1.0  # of a device and round, on average
    v: float = 1.0
    by: Literal["budget", "battery"] = "budget"
    asks: Literal["priced", "all"] = "priced"
    frame: int = 0
    growth: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (self.budget_j > 0 and self.v > 0 and self.frame >= 0 and self.growth >= 0):
            raise ConfigError(
                f"drift-plus-penalty needs budget_j > 0, v > 0, frame >= 0 and growth >= 0, got "
                f"{self.budget_j:g}, {self.v:g}, {self.frame} and {self.growth:g}. Change what is not."
            )

    def initial_state(self) -> PlannerState:
        """Return empty queues, and that nobody has been heard of."""
        never = np.full(self.num_devices, np.nan)
        return {
            **super().initial_state(),
            QUEUE: np.zeros(self.num_devices),
            ASKED_J: never,
            VALUE: never,
            CHARGE: never,
            CAPACITY: never,
        }

    def prices(self, round_index: int, state: PlannerState) -> FloatArray:
        """Return the price of each device's joule in this round [1/J]."""
        by_battery = self.by == "battery"
        owed_j = np.nan_to_num(state[CAPACITY] - state[CHARGE]) if by_battery else state[QUEUE]
        own = owed_j / (self.v * self._weight(round_index))
        return np.asarray(self.cell_planner.aims.energy_weight + own)

    def ask(self, round_index: int, state: PlannerState) -> IntArray:
        """Return those of the inner planner's choice that are worth their joules, or were never asked."""
        asked = super().ask(round_index, state)
        if self.asks == "all":
            return asked
        with np.errstate(invalid="ignore"):
            worth = state[VALUE] - self.prices(round_index, state) * state[ASKED_J]
        return asked[~(worth[asked] <= 0.0)]  # NaN: never heard of

    def round_planner(self, round_index: int, state: PlannerState) -> CellPlanner:
        """Return the cell's planner at these prices."""
        return self.cell_planner.with_prices(self.prices(round_index, state))

    def columns(self, state: PlannerState) -> Mapping[str, FloatArray]:
        """Return the queues that the prices come from."""
        return {} if self.by == "battery" else {QUEUE: state[QUEUE]}

    def after(
        self, round_index: int, reports: Reports, plan: Plan, outcome: Outcome, state: PlannerState
    ) -> PlannerState:
        """Return the queues after the round, and what it told of values, joules and charges."""
        after = super().after(round_index, reports, plan, outcome, state)
        energy_j, who = spent_j(outcome), reports.device_index
        queue = np.maximum(state[QUEUE] + energy_j - self.budget_j, 0.0)
        if self.frame and (round_index + 1) % self.frame == 0:
            queue = np.zeros_like(queue)
        asked_j, value = state[ASKED_J].copy(), state[VALUE].copy()
        asked_j[who] = _mean_after(asked_j[who], energy_j[who])
        if plan.scaled_contribution is not None:
            value[who] = _mean_after(value[who], plan.scaled_contribution[who])
        return {**after, QUEUE: queue, ASKED_J: asked_j, VALUE: value, **heard_batteries(outcome, state)}

    def describe(self) -> Mapping[str, Any]:
        """Return the inner planner's words and the knobs."""
        return {**super().describe(), "budget_j": self.budget_j, "v": self.v}

    def _weight(self, round_index: int) -> float:
        """Return how much more than the first round of its frame this one counts."""
        return 1.0 + self.growth * (round_index % self.frame) / self.frame if self.frame else 1.0


@dataclass(frozen=True, eq=False)
class ConstantPrices(OverACell):
    """Prices a joule of each device the same in all rounds: the best policy that never looks back."""

    price: float | Sequence[float] = 0.0  # [1/J], beside eta_1: one for all, or one a device

    def round_planner(self, round_index: int, state: PlannerState) -> CellPlanner:
        """Return the cell's planner at these prices."""
        del round_index, state
        own = np.broadcast_to(np.asarray(self.price, dtype=np.float64), (self.num_devices,))
        return self.cell_planner.with_prices(self.cell_planner.aims.energy_weight + own)


@dataclass(frozen=True, eq=False)
class CappedRounds(OverACell):
    """Lets no device spend more than ``budget_j`` in a round: what its upload may take is what is left of it.

    What it takes otherwise is known from its last round; who cannot listen and compute for so little is asked
    all the same, and overdraws. With ``saves`` what it has not spent so far is kept for later rounds, and who
    has not saved enough to listen and compute is not asked.
    """

    budget_j: float = 1.0
    saves: bool = False

    def initial_state(self) -> PlannerState:
        """Return that nobody has been heard of."""
        return {**super().initial_state(), ASKED_J: np.zeros(self.num_devices)}

    def left_j(self, round_index: int, state: PlannerState) -> FloatArray:
        """Return what each device's upload may take in this round; negative: not even the rest is there."""
        saved_j = (round_index + 1) * self.budget_j - state[SPENT] if self.saves else self.budget_j
        return np.asarray(saved_j - state[ASKED_J])

    def ask(self, round_index: int, state: PlannerState) -> IntArray:
        """Return whom the inner planner asks, but for those that have not saved enough."""
        asked = super().ask(round_index, state)
        return asked[self.left_j(round_index, state)[asked] >= 0.0] if self.saves else asked

    def round_planner(self, round_index: int, state: PlannerState) -> CellPlanner:
        """Return the cell's planner with a limit on each upload."""
        aims = self.cell_planner.aims
        given_j = np.inf if aims.max_energy_j is None else aims.max_energy_j
        limit_j = np.minimum(given_j, np.maximum(self.left_j(round_index, state), 0.0))
        return replace(self.cell_planner, aims=replace(aims, max_energy_j=limit_j))

    def after(
        self, round_index: int, reports: Reports, plan: Plan, outcome: Outcome, state: PlannerState
    ) -> PlannerState:
        """Return what each took beside its upload."""
        after = super().after(round_index, reports, plan, outcome, state)
        assert outcome.costs is not None
        other_j = outcome.costs.device_energy_j - outcome.costs.upload_energy_j
        kept_j = state[ASKED_J].copy()
        kept_j[reports.device_index] = other_j[reports.device_index]
        return {**after, ASKED_J: kept_j}


@dataclass(frozen=True, eq=False)
class UntilSpent(OverACell):
    """Plans as if there were no budget, and no longer asks a device that has spent ``total_j``."""

    total_j: float = 1.0

    def ask(self, round_index: int, state: PlannerState) -> IntArray:
        """Return those that have something left."""
        asked = super().ask(round_index, state)
        return asked[state[SPENT][asked] < self.total_j]
