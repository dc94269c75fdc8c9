"""Devices on batteries: a planner of your own that hears what each round cost, and a run that is resumed.

The planner is around another one, here URAL's, and changes two things: who is asked, and what is remembered.
Its state is in every checkpoint, so a run that was stopped goes on as if nothing had happened.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from fedwave import load_experiment, resume_run, run_experiment
from fedwave.runs.run import StopRun
from fedwave.server import Outcome, Plan, PlannerAround, PlannerState, Reports
from fedwave.simulation.simulation import Simulation
from fedwave.units import IntArray


@dataclass(frozen=True, eq=False)
class BatteryPlanner(PlannerAround):
    """Asks only devices with energy left. A round takes what it really cost each of them, and harvests."""

    capacity_j: float = 5.0
    harvest_j: float = 1.0

    def initial_state(self) -> PlannerState:
        """Return the inner planner's state and full batteries."""
        state = self.planner.initial_state()
        num_devices = len(state["history.times_selected"])
        return {**state, "battery_j": np.full(num_devices, self.capacity_j)}

    def ask(self, round_index: int, state: PlannerState) -> IntArray:
        """Return whom the inner planner asks, less those that are empty."""
        asked = self.planner.ask(round_index, state)
        return asked[state["battery_j"][asked] > 0]

    def after(
        self, round_index: int, reports: Reports, plan: Plan, outcome: Outcome, state: PlannerState
    ) -> PlannerState:
        """Return the state with what the round has left in the batteries."""
        assert outcome.costs is not None  # over a cell
        after = super().after(round_index, reports, plan, outcome, state)
        left_j = state["battery_j"] - outcome.costs.device_energy_j + self.harvest_j
        return {**after, "battery_j": np.minimum(left_j, self.capacity_j)}


def on_batteries(simulation: Simulation) -> Simulation:
    """Return the simulation with a battery planner around its own; ``adapt`` does this before a run."""
    planner = BatteryPlanner(simulation.federation.planner)
    return replace(simulation, federation=replace(simulation.federation, planner=planner))


class StopAfter:
    """Stops a run after some rounds, as a power cut might."""

    def __init__(self, num_rounds: int) -> None:
        self.num_rounds = num_rounds

    def started(self, *_: object) -> None:
        """Do nothing."""

    def round_done(self, record: object) -> None:
        """Count down."""
        self.num_rounds -= 1
        if self.num_rounds == 0:
            raise StopRun("for lunch")


def main(out: Path) -> None:
    experiment = load_experiment("digits/ural", ["num_rounds=6"])
    stopped = run_experiment(experiment, out, adapt=on_batteries, observers=[StopAfter(3)])
    print(f"stopped after {stopped.summary['num_rounds']} rounds: {stopped.stopped}")
    result = resume_run(out, adapt=on_batteries)
    for round_index, count in enumerate(result.rounds["num_computed"]):
        print(f"round {round_index}: {count} of 30 devices had energy left")
    print(f"{result.summary['cell']['energy_j']:.1f} J in all")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "runs/batteries"))
