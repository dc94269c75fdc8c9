"""Devices on batteries: a planner that hears what each round cost, and plans with what is left.

``battery.toml`` names it. It is around another planner, URAL's there, and changes three things: who is asked,
what an upload may cost, and what is remembered. What is left in the batteries is in every checkpoint.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from fedwave.errors import ConfigError
from fedwave.server import CellPlanner, Outcome, Plan, PlannerAround, PlannerState, Reports
from fedwave.units import IntArray
from fedwave.wireless.terms import ChannelDraw


@dataclass(frozen=True, eq=False)
class BatteryPlanner(PlannerAround):
    """Lets a device rest until it has ``reserve_j``; none uploads with more than it has. A round harvests."""

    planner: CellPlanner  # the one that the settings describe; the other fields are options
    capacity_j: float = 5.0
    reserve_j: float = 1.0  # a device with less does not compute
    harvest_j: float = 1.0  # of each device in each round

    def __post_init__(self) -> None:
        if not isinstance(self.planner, CellPlanner):
            raise ConfigError("a battery is drained over a radio cell, got none. Set cell.preset.")

    def initial_state(self) -> PlannerState:
        """Return the inner planner's state and full batteries."""
        num_devices = self.planner.fleet.num_devices
        return {**super().initial_state(), "battery_j": np.full(num_devices, self.capacity_j)}

    def ask(self, round_index: int, state: PlannerState) -> IntArray:
        """Return whom the inner planner asks, less those that rest."""
        asked = super().ask(round_index, state)
        return asked[state["battery_j"][asked] >= self.reserve_j]

    def plan(
        self,
        round_index: int,
        asked: IntArray,
        reports: Reports,
        channel: ChannelDraw | None,
        state: PlannerState,
    ) -> Plan:
        """Return the inner planner's plan when no upload may take more than its battery has."""
        aims = self.planner.aims
        most_j = np.minimum(state["battery_j"], np.inf if aims.max_energy_j is None else aims.max_energy_j)
        inner = replace(self.planner, aims=replace(aims, max_energy_j=most_j))
        return inner.plan(round_index, asked, reports, channel, state)

    def after(
        self, round_index: int, reports: Reports, plan: Plan, outcome: Outcome, state: PlannerState
    ) -> PlannerState:
        """Return the state with what the round, its computing too, has left in the batteries."""
        assert outcome.costs is not None  # over a cell
        after = super().after(round_index, reports, plan, outcome, state)
        left_j = np.maximum(state["battery_j"] - outcome.costs.device_energy_j, 0.0)
        return {**after, "battery_j": np.minimum(left_j + self.harvest_j, self.capacity_j)}
