"""Planners on a run's trace: the run's own figures by its tables, and none within budgets above the bound."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fedwave.errors import ConfigError, ProblemError, RunError
from fedwave.longterm.bound import LongTermBound
from fedwave.longterm.comparison import (
    DEFAULT,
    PRICED_BY_V,
    RIVALS,
    Candidate,
    LongTermComparison,
    compare_long_term,
    typical_v,
)
from fedwave.longterm.trace import Replay
from fedwave.runs.compare import read_run
from fedwave.runs.folder import RunFolder
from fedwave.runs.run import run_experiment
from tests.longterm.recorded_runs import BUDGET_J, CELL, recorded
from tests.runs.small_runs import tiny


@pytest.fixture(scope="module")
def run_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return recorded(tmp_path_factory.mktemp("recorded") / "run")


@pytest.fixture(scope="module")
def found(run_path: Path) -> LongTermComparison:
    every = (*RIVALS, *PRICED_BY_V)
    return compare_long_term(run_path, budget_j=BUDGET_J, planners=every, v=(0.0002, 0.002), num_steps=25)


def test_the_runs_own_figures_are_those_of_its_tables(run_path: Path, found: LongTermComparison) -> None:
    run, table = read_run(run_path), RunFolder(run_path).table("devices.csv")
    own = found.candidates[0]
    assert own.name == "this run (auto)"
    paid = CELL["energy_weight"] * run.curve("energy_j") + CELL["delay_weight"] * run.curve("delay_s")
    np.testing.assert_allclose(own.replay.utility, run.curve("contribution") - paid, rtol=1e-6)
    phases = ("downlink", "compute", "report", "upload", "idle")
    joules = sum(np.asarray(table[f"{phase}_energy_j"]) for phase in phases).reshape(8, 6)
    np.testing.assert_allclose(own.replay.energy_j, joules, rtol=1e-9)
    worst = joules.sum(axis=0).max() / 8
    assert own.replay.worst_energy_j == pytest.approx(worst)
    assert own.overdraw_j == pytest.approx(worst - BUDGET_J)
    assert own.overdraw_j > 0  # or the test below would say nothing
    assert (found.num_rounds, found.num_devices, found.budget_j) == (8, 6, BUDGET_J)
    assert own.replay.num_asked.tolist() == [6.0] * 8
    assert own.replay.num_received.tolist() == run.curve("num_received").tolist()


def test_the_plain_planner_replays_the_run_and_who_keeps_the_budget_is_below_the_bound(
    found: LongTermComparison,
) -> None:
    by_name = {one.name: one for one in found.candidates}
    own, myopic = found.candidates[0], by_name["myopic"]
    np.testing.assert_allclose(myopic.replay.utility, own.replay.utility, rtol=1e-6)
    np.testing.assert_allclose(myopic.replay.energy_j, own.replay.energy_j, rtol=1e-6)
    keeps = [one for one in found.candidates if one.overdraw_j <= 0.0]
    assert {one.name for one in keeps} >= {"capped-rounds"}
    for one in keeps:
        assert one.replay.mean_utility <= found.bound.value
        assert found.share(one) <= 1.0
    # With prices a device spends no more than without.
    priced = [one for one in found.candidates if one.v == 0.0002]
    assert [one.name for one in priced] == list(PRICED_BY_V)
    assert all(one.replay.worst_energy_j < myopic.replay.worst_energy_j for one in priced)
    assert by_name["eafl"].replay.num_asked.max() <= 3  # as many as there are blocks
    spent = by_name["until-spent"].replay.energy_j.cumsum(axis=0)
    is_asked = by_name["until-spent"].replay.energy_j[1:] > 2e-4  # sleepers take less
    np.testing.assert_array_equal(is_asked, spent[:-1] < 8 * BUDGET_J)  # until all of it is spent
    assert not is_asked.all()


def test_the_rows_say_utility_and_overdraw_by_hand() -> None:
    def made(utility: list[float], energy_j: list[list[float]]) -> Replay:
        count = np.array([2.0, 4.0])
        return Replay(
            utility=np.array(utility), energy_j=np.array(energy_j), num_asked=count, num_received=count / 2
        )

    bound = LongTermBound(
        value=8.0, prices=np.array([0.0, 2.0]), values=np.array([9.0, 8.0]), energy_j=np.zeros(2)
    )
    one = Candidate(name="one", v=None, replay=made([2.0, 4.0], [[1.0, 0.0], [2.0, 1.0]]), budget_j=1.25)
    two = Candidate(name="two", v=3.0, replay=made([9.0, 9.0], [[0.0, 1.0], [0.0, 1.0]]), budget_j=1.25)
    comparison = LongTermComparison(
        budget_j=1.25, num_rounds=2, num_devices=2, bound=bound, candidates=(one, two)
    )
    rows = comparison.rows()
    assert [row["planner"] for row in rows] == ["bound", "one", "two"]
    assert [row["utility"] for row in rows] == [8.0, 3.0, 9.0]
    assert [row["share_of_bound"] for row in rows] == [1.0, 0.375, 1.125]
    assert [row["worst_energy_j"] for row in rows] == [None, 1.5, 1.0]
    assert [row["overdraw_j"] for row in rows] == [None, 0.25, -0.25]
    assert [row["num_asked"] for row in rows] == [None, 3.0, 3.0]
    assert [row["num_received"] for row in rows] == [None, 1.5, 1.5]
    assert [row["v"] for row in rows] == [None, None, 3.0]
    nothing = replace(comparison, bound=replace(bound, value=0.0))
    assert math.isnan(nothing.share(one))


def test_v_is_such_that_a_queue_of_budgets_has_the_bounds_price() -> None:
    bound = LongTermBound(
        value=1.0, prices=np.array([0.0, 2.0, 4.0, 6.0]), values=np.ones(1), energy_j=np.zeros(4)
    )
    assert typical_v(0.5, bound) == [0.12, 0.38, 1.2]  # 0.5 / 4, 1.5 / 4 and 5 / 4, to two digits
    free = replace(bound, prices=np.zeros(4))
    assert typical_v(0.5, free) == [0.25, 0.75, 2.5]  # a price of 1 / 0.5


def test_the_budget_is_the_planners_own_or_an_equal_share(run_path: Path, tmp_path: Path) -> None:
    equal = compare_long_term(run_path, planners=(), num_steps=1)
    assert equal.budget_j == pytest.approx(read_run(run_path).curve("energy_j").mean() / 6)
    assert [one.name for one in equal.candidates] == ["this run (auto)"]
    planner = {"kind": "drift-plus-penalty", "budget_j": 0.25, "asks": "all"}
    own = compare_long_term(recorded(tmp_path / "own", planner=planner), planners=(), num_steps=1)
    assert own.budget_j == 0.25
    assert own.candidates[0].name == "this run (drift-plus-penalty)"


def test_what_cannot_be_is_refused(run_path: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r'There is no planner "ocan".*ocean'):
        compare_long_term(run_path, planners=["ocan"])
    for wrong in (0.0, -1.0, math.nan, math.inf):
        with pytest.raises(ConfigError, match="budget_j must be finite and > 0"):
            compare_long_term(run_path, budget_j=wrong)
        with pytest.raises(ConfigError, match="v must be finite and > 0"):
            compare_long_term(run_path, v=[1.0, wrong])
    with pytest.raises(RunError, match="is not a run folder"):
        compare_long_term(tmp_path)
    dead = tiny(cell={**CELL, "battery": {"capacity_j": 1e-4}}, num_rounds=3)
    path = run_experiment(dead, tmp_path / "dead").path
    with pytest.raises(ProblemError, match="the contribution of every device in every round"):
        compare_long_term(path)


def test_the_defaults_are_planners_that_there_are() -> None:
    assert set(DEFAULT) <= {*RIVALS, *PRICED_BY_V}
    assert set(DEFAULT) == {*RIVALS, *PRICED_BY_V} - {"ocean"}
