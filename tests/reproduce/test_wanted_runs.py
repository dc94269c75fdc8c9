"""Runs are wanted once, grouped by what they share, and their time is estimated from what is known."""

from __future__ import annotations

import pytest

from fedwave.reproduce.items import ITEMS
from fedwave.reproduce.profile import QUICK
from fedwave.reproduce.wanted_runs import (
    FIRST_GUESS,
    SHARED,
    STARTING_S,
    RunCosts,
    grouped,
    missing_runs,
    relative_cost,
    wanted_runs,
)
from fedwave.runs.kept_runs import KeptRun, KeptRuns


def kept(key: str, *, seconds: float = 11.5, num_remembered: int = 0) -> KeptRun:
    return KeptRun(key, "", {}, 1, seconds, num_remembered, {}, {})


def test_runs_are_grouped_by_what_they_share(tmp_path) -> None:
    wanted = [
        *wanted_runs(ITEMS["fig-4"], QUICK, num_seeds=2),
        *wanted_runs(ITEMS["fig-5"], QUICK, num_seeds=1),
    ]
    missing = missing_runs(wanted, KeptRuns(tmp_path))
    assert len(missing) == 2 * 9 + 4 * 9
    groups = grouped(missing, RunCosts())
    assert sorted(map(len, groups)) == [9, 9, 9, 9, 18]  # those with as many blocks may share
    assert [group[0].seed for group in groups] == [0, 0, 0, 0, 1]
    seconds = [sum(map(RunCosts().seconds_of, group)) for group in groups[:4]]
    assert seconds == sorted(seconds, reverse=True)  # the longest of a seed first


def test_a_run_that_two_items_want_is_missing_once_and_with_its_readings(tmp_path) -> None:
    plain = list(wanted_runs(ITEMS["fig-4"], QUICK, num_seeds=1))
    read = list(wanted_runs(ITEMS["table-2"], QUICK, num_seeds=1))
    more = list(wanted_runs(ITEMS["fig-2"], QUICK, num_seeds=1))
    missing = missing_runs([*plain, *read, *more], KeptRuns(tmp_path))
    assert len({run.key for run in missing}) == len(missing) == 9 + 9
    results = KeptRuns(tmp_path)
    for run in (plain[0], read[0]):
        results.add(kept(run.key))
    left = {run.key for run in missing_runs([*plain, *read], results)}
    assert plain[0].key not in left
    assert read[0].key in left  # it is kept without the readings that Table II asks for


def test_time_is_estimated_from_finished_runs_and_before_these_from_a_guess() -> None:
    alone = next(wanted_runs(ITEMS["table-2"], QUICK, num_seeds=1))
    over_cell = next(wanted_runs(ITEMS["fig-4"], QUICK, num_seeds=1))
    costs = RunCosts()
    rounds, rounds_over_cell = relative_cost(alone.experiment), relative_cost(over_cell.experiment)
    assert costs.seconds_of(alone) == pytest.approx(STARTING_S + FIRST_GUESS["digits"] * rounds)
    assert costs.seconds_of(over_cell) == pytest.approx(
        SHARED * (STARTING_S + FIRST_GUESS["digits"] * rounds_over_cell)
    )
    costs.learn(alone, kept(alone.key, seconds=11.5))  # so much for all rounds: 10 s without the start
    assert costs.seconds_of(alone) == pytest.approx(11.5)
    costs.learn(alone, kept(alone.key, seconds=900.0, num_remembered=3))  # says nothing about a round
    assert costs.seconds_of(alone) == pytest.approx(11.5)
    a_round = 10.0 / rounds
    costs.learn(over_cell, kept(over_cell.key, seconds=0.5 * a_round * rounds_over_cell, num_remembered=3))
    assert costs.seconds_of(over_cell) == pytest.approx(0.5 * (STARTING_S + a_round * rounds_over_cell))


def test_schemes_in_which_few_compute_cost_less() -> None:
    by_scheme = {
        (run.point.scheme, run.point.counting): relative_cost(run.experiment)
        for run in wanted_runs(ITEMS["fig-4"], QUICK, num_seeds=1)
    }
    assert by_scheme["RU-Greedy", "ours"] < by_scheme["RU-Greedy", "paper"] == by_scheme["NUFM-Greedy", ""]


def test_local_steps_cost_as_many_times_as_there_are() -> None:
    costs = {
        run.point.value: relative_cost(run.experiment)
        for run in wanted_runs(ITEMS["fig-3"], QUICK, num_seeds=1)
        if run.point.scheme == "NUFM"
    }
    evaluation = 2 * costs[2] - costs[4]  # which is the same for both
    assert 0.0 < evaluation < 0.1 * costs[2]
