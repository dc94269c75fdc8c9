"""A part of one's own in a whole run: it is stopped, it goes on, and it ends as if it had never stopped."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from fedwave.errors import RunError
from fedwave.runs.run import resume_run, run_experiment
from fedwave.selection import POLICIES
from fedwave.server import Outcome, Plan, PlannerAround, PlannerState, Reports
from fedwave.simulation.simulation import Simulation
from fedwave.units import IntArray
from fedwave.wireless.terms import ChannelDraw
from tests.experiments.cell_tables import PAPER_CELL, STREET_CELL, experiment
from tests.runs.small_runs import StopAfter, contents
from tests.selection.oort import Oort


@dataclass(frozen=True, eq=False)
class BatteryPlanner(PlannerAround):
    """Asks only devices with energy left; a round takes what it really cost each of them."""

    capacity_j: float

    def initial_state(self) -> PlannerState:
        state = self.planner.initial_state()
        return {**state, "battery_j": np.full(len(state["history.last_loss"]), self.capacity_j)}

    def ask(self, round_index: int, state: PlannerState) -> IntArray:
        asked = self.planner.ask(round_index, state)
        return asked[state["battery_j"][asked] > 0]

    def after(
        self, round_index: int, reports: Reports, plan: Plan, outcome: Outcome, state: PlannerState
    ) -> PlannerState:
        assert outcome.costs is not None
        after = super().after(round_index, reports, plan, outcome, state)
        return {**after, "battery_j": state["battery_j"] - outcome.costs.device_energy_j}


def on_batteries(simulation: Simulation) -> Simulation:
    planner = BatteryPlanner(simulation.federation.planner, capacity_j=2.0)
    return replace(simulation, federation=replace(simulation.federation, planner=planner))


@dataclass(frozen=True, eq=False)
class WeighsBySamples(PlannerAround):
    """Weighs each upload by its device's samples."""

    def plan(
        self,
        round_index: int,
        asked: IntArray,
        reports: Reports,
        channel: ChannelDraw | None,
        state: PlannerState,
    ) -> Plan:
        plan = super().plan(round_index, asked, reports, channel, state)
        rows = np.searchsorted(reports.device_index, plan.selected)
        return replace(plan, weights=reports.num_samples[rows].astype(float))


def weighed(simulation: Simulation) -> Simulation:
    planner = WeighsBySamples(simulation.federation.planner)
    return replace(simulation, federation=replace(simulation.federation, planner=planner))


def test_a_battery_planner_over_a_cell_resumes_to_the_same_bits(tmp_path: Path) -> None:
    settings = experiment(PAPER_CELL, scheme="ural", num_rounds=5)
    whole = run_experiment(settings, tmp_path / "whole", adapt=on_batteries)
    computed = whole.rounds["num_computed"].tolist()
    assert computed[0] > computed[-1] > 0  # some are empty in the end
    with pytest.raises(KeyboardInterrupt):
        run_experiment(settings, tmp_path / "cut", adapt=on_batteries, observers=[StopAfter(2)])
    resume_run(tmp_path / "cut", adapt=on_batteries)
    assert contents(tmp_path / "cut") == contents(tmp_path / "whole")


def test_its_summary_says_what_the_run_over_the_cell_cost(tmp_path: Path) -> None:
    settings = experiment(PAPER_CELL, scheme="ural", num_rounds=2)
    plain = run_experiment(settings, tmp_path / "plain").summary["cell"]
    adapted = run_experiment(settings, tmp_path / "adapted", adapt=on_batteries).summary["cell"]
    assert list(adapted) == list(plain)
    assert list(plain)[:4] == ["method", "contribution_scale", "contribution_constant", "model_bits"]
    assert adapted["method"] == plain["method"] == "optimal"
    assert adapted["energy_j"] > 0


def test_a_checkpoint_of_another_planner_is_refused(tmp_path: Path) -> None:
    settings = experiment(PAPER_CELL, scheme="ural", num_rounds=3)
    with pytest.raises(KeyboardInterrupt):
        run_experiment(settings, tmp_path, adapt=on_batteries, observers=[StopAfter(1)])
    with pytest.raises(RunError, match="holds planner.battery_j, which the run does not have"):
        resume_run(tmp_path)


@pytest.mark.parametrize("cell", [None, STREET_CELL])
def test_a_policy_with_a_state_of_its_own_resumes_to_the_same_bits(
    tmp_path: Path, cell: dict[str, object] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(POLICIES, "oort", Oort)
    selection = {"policy": {"kind": "oort", "exploration": 0.5}, "num_selected": 3}
    method = {} if cell is None else {"method": "greedy"}
    settings = experiment(None if cell is None else {**cell, **method}, num_rounds=5, selection=selection)
    whole = run_experiment(settings, tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        run_experiment(settings, tmp_path / "cut", observers=[StopAfter(2)])
    resume_run(tmp_path / "cut")
    assert contents(tmp_path / "cut") == contents(tmp_path / "whole")
    assert whole.rounds["num_computed"].tolist() == [3] * 5


def test_weights_move_the_model_and_a_weighted_run_resumes(tmp_path: Path) -> None:
    settings = experiment(num_rounds=3, scheme="nufm", selection={"num_selected": 4})
    run_experiment(settings, tmp_path / "plain")
    run_experiment(settings, tmp_path / "whole", adapt=weighed)
    with pytest.raises(KeyboardInterrupt):
        run_experiment(settings, tmp_path / "cut", adapt=weighed, observers=[StopAfter(1)])
    resume_run(tmp_path / "cut", adapt=weighed)
    assert contents(tmp_path / "cut") == contents(tmp_path / "whole")
    assert contents(tmp_path / "whole")["model"] != contents(tmp_path / "plain")["model"]
