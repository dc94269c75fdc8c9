"""Runs whose planner does not know the gains: the regret in their tables, and the same bits again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedwave.allocation import Allocation, AllocationProblem, Evaluation, allocate, evaluate
from fedwave.experiments.build import build_simulation
from fedwave.rng import Stream, generator
from fedwave.runs.run import resume_run, run_experiment
from fedwave.server import CellPlanner, PlannerAround
from fedwave.server.estimation import EXACT
from fedwave.simulation.cell_world import CellWorld
from tests.experiments.cell_tables import PAPER_CELL, STREET_CELL, experiment, rows
from tests.runs.small_runs import StopAfter, results

REGRET = ("true_objective", "clairvoyant_objective", "regret")
WRONG = {"kind": "log-normal", "error_db": 6.0, "quantile": 0.3}


def run(folder: Path, cell: dict[str, Any], **settings: Any) -> Path:
    return run_experiment(experiment(cell, **settings), folder).path


def plain(path: Path, *without: str) -> list[dict[str, str]]:
    return [
        {name: value for name, value in row.items() if name not in (*without, "wall_time_s")}
        for row in rows(path, "rounds.csv")
    ]


@pytest.mark.parametrize("cell", [PAPER_CELL, STREET_CELL], ids=["paper", "street"])
def test_an_error_of_zero_is_the_run_that_knows_and_regrets_nothing(
    cell: dict[str, Any], tmp_path: Path
) -> None:
    known = run(tmp_path / "known", cell)
    none = run(tmp_path / "none", {**cell, "estimation": {"kind": "log-normal", "error_db": 0.0}})
    assert not set(REGRET) & set(rows(known, "rounds.csv")[0])
    assert plain(none, *REGRET) == plain(known)
    assert (none / "devices.csv").read_bytes() == (known / "devices.csv").read_bytes()
    for row in rows(none, "rounds.csv"):
        objective = float(row["objective"])
        assert float(row["true_objective"]) == pytest.approx(objective, rel=1e-12)
        assert float(row["clairvoyant_objective"]) == pytest.approx(objective, rel=1e-6)
        assert -1e-12 * abs(objective) <= float(row["regret"]) <= 1e-6 * abs(objective)


def test_a_wrong_plan_meets_the_true_gains_and_regrets_them(tmp_path: Path) -> None:
    """Every number of the hindsight again: by the definitions, from the tables and the cell's own draw."""
    settings = experiment({**PAPER_CELL, "estimation": WRONG}, num_rounds=3)
    simulation = build_simulation(settings)
    planner, world = simulation.federation.planner, simulation.federation.world
    assert isinstance(planner, CellPlanner)
    assert isinstance(world, CellWorld)
    path = run_experiment(settings, tmp_path / "run").path
    table, devices = rows(path, "rounds.csv"), rows(path, "devices.csv")
    n = len(simulation.train)
    regrets = []
    for k, row in enumerate(table):
        draw = world.channel(k)
        mine = devices[k * n : (k + 1) * n]
        block = np.array([int(one["block"]) for one in mine])
        power = np.array([float(one["transmit_power_w"]) for one in mine])
        worth = np.array([float(one["scaled_contribution"]) for one in mine])
        device = np.flatnonzero(block >= 0)
        noise = draw.interference_w[block[device]] + world.terms.noise_w
        rate = world.terms.bandwidth_hz * np.log2(1 + power[device] * draw.channel_gain[device] / noise)
        time_s = world.work.model_bits / rate
        assert [float(mine[i]["rate_bps"]) for i in device] == pytest.approx(rate)
        compute_j = sum(float(one["compute_energy_j"]) for one in mine)
        compute_s = max(float(one["compute_time_s"]) for one in mine)
        cost = planner.aims.energy_weight * (compute_j + float(power[device] @ time_s))
        cost += planner.aims.delay_weight * (compute_s + time_s.max(initial=0.0))
        true = float(row["true_objective"])
        assert true == pytest.approx(worth[device].sum() - cost, rel=1e-9)
        # What the planner believed: the true gains times the errors of this round, backed off.
        z = generator(settings.seed, Stream.ESTIMATION, k).standard_normal((n, 1))[:, 0]
        believed = draw.channel_gain * 10 ** (6.0 * (z - 0.5244005127080409) / 10)  # z_0.7
        planned = np.log2(1 + power[device] * believed[device] / noise)
        cost = planner.aims.energy_weight * (compute_j + float(power[device] @ (1 / planned)))
        cost += planner.aims.delay_weight * (compute_s + (1 / planned).max(initial=0.0))
        assert float(row["objective"]) == pytest.approx(worth[device].sum() - cost, rel=1e-9)
        best = float(row["clairvoyant_objective"])
        regrets.append(float(row["regret"]))
        assert regrets[-1] == pytest.approx(best - true, abs=2e-6 * abs(best))
        assert regrets[-1] >= -1e-12 * abs(best)
    assert max(regrets) > 0.0


def test_the_clairvoyant_is_the_optimum_of_the_round_with_true_gains(tmp_path: Path) -> None:
    """A planner that knows, given the same reports, promises what the wrong one's table calls clairvoyant."""

    class Noting(PlannerAround):
        def plan(self, round_index: int, asked: Any, reports: Any, channel: Any, state: Any) -> Any:
            known = replace(self.planner, estimation=EXACT)  # type: ignore[type-var]
            problem = known.plan(round_index, asked, reports, channel, state).problem
            promised.append(allocate(problem).objective)
            return super().plan(round_index, asked, reports, channel, state)

    promised: list[float] = []

    def noting(simulation: Any) -> Any:
        federation = simulation.federation
        return replace(simulation, federation=replace(federation, planner=Noting(federation.planner)))

    settings = experiment({**STREET_CELL, "losses": {}, "estimation": WRONG}, num_rounds=3)
    path = run_experiment(settings, tmp_path / "run", adapt=noting).path
    found = [float(row["clairvoyant_objective"]) for row in rows(path, "rounds.csv")]
    assert found == pytest.approx(promised, rel=1e-6)


@pytest.mark.parametrize("kind", [WRONG, {"kind": "complex-gaussian", "nmse": 0.5, "per_block": True}])
def test_killed_and_resumed_it_ends_at_the_same_bits(kind: dict[str, Any], tmp_path: Path) -> None:
    cell = {**STREET_CELL, "estimation": kind}
    whole = run(tmp_path / "whole", cell, num_rounds=6)
    again = run(tmp_path / "again", cell, num_rounds=6)
    assert results(again) == results(whole)
    with pytest.raises(KeyboardInterrupt):
        run_experiment(experiment(cell, num_rounds=6), tmp_path / "cut", observers=[StopAfter(2)])
    assert results(resume_run(tmp_path / "cut").path) == results(whole)
    assert set(REGRET) <= set(rows(whole, "rounds.csv")[0])


def test_a_hard_limit_breaks_off_what_takes_longer_than_was_believed(tmp_path: Path) -> None:
    cell = {**PAPER_CELL, "max_delay_s": 8.0, "estimation": {"kind": "log-normal", "error_db": 8.0}}
    path = run(tmp_path / "run", cell, num_rounds=4)
    table = rows(path, "rounds.csv")
    assert sum(int(row["num_late"]) for row in table) > 0
    for row in rows(path, "devices.csv"):
        assert float(row["upload_time_s"]) <= 8.0 * (1 + 1e-9)
    for row in table:
        assert float(row["regret"]) >= -1e-9


def test_the_true_problem_has_the_worlds_threshold_and_the_phases_that_it_took(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not the planner's margin of 6 dB, and not the broadcast that it believed in."""
    met: list[AllocationProblem] = []

    def noting(plan: Allocation, true_problem: AllocationProblem) -> Evaluation:
        met.append(true_problem)
        return evaluate(plan, true_problem)

    monkeypatch.setattr("fedwave.simulation.cell_world.evaluate", noting)
    losses = {"outage_snr_db": 3.0, "outage_margin_db": 6.0, "deadline_s": 30.0}
    cell = {**STREET_CELL, "losses": losses, "report_bits": 0.0, "estimation": WRONG}
    table = rows(run(tmp_path / "run", cell), "rounds.csv")
    assert len(met) == len(table) == 3
    for problem, row in zip(met, table, strict=True):
        assert problem.min_snr == pytest.approx(10**0.3, rel=1e-8)
        assert problem.fixed_delay_s == pytest.approx(float(row["downlink_time_s"]))
        assert problem.fixed_delay_s > 0.0
