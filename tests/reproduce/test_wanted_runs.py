"""Runs are wanted once, grouped by what they share, and their time is estimated from what is known."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fedwave.errors import DataError, RunError
from fedwave.reproduce.items import FULL, ITEMS
from fedwave.reproduce.judgements import FIGURES, OWN_TEST
from fedwave.reproduce.outputs import finished_runs
from fedwave.reproduce.profile import QUICK
from fedwave.reproduce.steps import ARMS
from fedwave.reproduce.wanted_runs import (
    FIRST_GUESS,
    SHARED,
    STARTING_S,
    RunCosts,
    WantedRun,
    grouped,
    made_together,
    missing_runs,
    relative_cost,
    wanted_runs,
)
from fedwave.runs.kept_runs import KeptRun, KeptRuns
from fedwave.runs.provenance import processor

READINGS = {"20": {OWN_TEST: dict.fromkeys(FIGURES, 0.5)}}


def kept(key: str, *, seconds: float = 11.5, num_remembered: int = 0, made_on: str | None = None) -> KeptRun:
    made_with = {"processor": made_on or processor()}
    figures, curves = {"accuracy": 0.5}, {name: [1.0] for name in FULL}
    return KeptRun(key, "", made_with, 1, seconds, num_remembered, figures, curves)


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


def test_a_run_without_the_curves_that_an_item_needs_is_missing(tmp_path) -> None:
    run = next(wanted_runs(ITEMS["fig-4"], QUICK, num_seeds=1))
    results = KeptRuns(tmp_path)
    curves = {name: [1.0] for name in ("heldout_loss", "energy_j", "delay_s")}
    results.add(replace(kept(run.key), curves=curves))
    assert run.found(results) is None
    results.add(replace(kept(run.key), curves={**curves, **{name: [1.0] for name in FULL}}))
    assert run.found(results) is not None


def test_what_is_compared_comes_from_one_kind_of_processor(tmp_path) -> None:
    wanted = list(wanted_runs(ITEMS["fig-4"], QUICK, num_seeds=1))
    here, other = KeptRuns(tmp_path / "here"), "another processor"
    for run in wanted[:-1]:
        here.add(kept(run.key))
    here.add(kept(wanted[-1].key, made_on=other))
    assert made_together(wanted, here) is None
    assert [run.key for run in missing_runs(wanted, here)] == [wanted[-1].key]
    elsewhere = KeptRuns(tmp_path / "elsewhere")
    for run in wanted:
        elsewhere.add(kept(run.key, made_on=other))
    assert [run.processor for run in made_together(wanted, elsewhere) or ()] == [other] * len(wanted)
    assert missing_runs(wanted, elsewhere) == []  # complete: it is not made again


def test_each_number_of_devices_of_figure_2_may_come_from_a_processor_of_its_own(tmp_path) -> None:
    wanted, store = list(wanted_runs(ITEMS["fig-2"], QUICK, num_seeds=1)), KeptRuns(tmp_path)
    for run in wanted:
        made_on = "another processor" if run.point.value == wanted[0].point.value else None
        store.add(replace(kept(run.key, made_on=made_on), test_readings=READINGS))
    assert missing_runs(wanted, store) == []
    assert len(finished_runs(ITEMS["fig-2"], QUICK, store, num_seeds=1)) == len(wanted)
    mixed = KeptRuns(tmp_path / "mixed")
    for run in wanted:
        made_on = "another processor" if run.point.scheme == wanted[0].point.scheme else None
        mixed.add(replace(kept(run.key, made_on=made_on), test_readings=READINGS))
    left = [run.key for run in missing_runs(wanted, mixed)]
    assert left == [run.key for run in wanted if run.point.scheme == wanted[0].point.scheme]


def test_the_report_takes_one_processors_runs_and_prefers_those_with_all_curves(tmp_path) -> None:
    item, store = ITEMS["fig-4"], KeptRuns(tmp_path / "runs")
    wanted = list(wanted_runs(item, QUICK, num_seeds=2))
    for run in wanted:
        store.add(replace(kept(run.key, made_on="old"), curves={"heldout_loss": [1.0]}))
    store.gather()
    for run in wanted:
        if run.seed == 1 or run is wanted[0]:
            store.add(kept(run.key, made_on="new"))
    found = finished_runs(item, QUICK, store, num_seeds=2)
    assert [(run.seed, own.processor) for run, own in found] == [
        (run.seed, "new" if run.seed == 1 else "old") for run in wanted
    ]
    # Of seed 1 one processor has everything; of seed 0 this one has made nothing with all curves.
    assert {run.seed for run in missing_runs(wanted, store)} == {0}
    assert len(missing_runs(wanted, store)) == len(wanted) // 2
    store.gather()
    assert {run.processor for run in store.every(wanted[0].key)} == {"old", "new"}


def test_a_dataset_that_is_not_here_is_guessed(monkeypatch) -> None:
    def absent(*_: object, **__: object) -> KeptRun:
        raise DataError("no data")

    monkeypatch.setattr("fedwave.reproduce.wanted_runs.single_run", absent)
    costs = RunCosts()
    assert costs.measure("digits", {"digits"}, None) == ["digits"]
    assert costs.seconds_of_a_round == {}


def test_a_run_serves_all_points_that_want_it(tmp_path) -> None:
    run = next(wanted_runs(ITEMS["table-2"], QUICK, num_seeds=1))
    poor = replace(run.point, with_readings=False, curves=())
    alone = WantedRun(poor, 0, poor.experiment(0), run.key)
    for wanted in ([alone, run], [run, alone]):
        (merged,) = missing_runs(wanted, KeptRuns(tmp_path))
        assert merged.point.with_readings
        assert set(merged.point.curves) == set(run.point.curves)
        assert merged.experiment.evaluation.training_devices
    (merged,) = missing_runs([alone], KeptRuns(tmp_path))
    assert not merged.experiment.evaluation.training_devices


def test_arms_come_after_their_leader_and_else_alone(tmp_path) -> None:
    wanted = list(wanted_runs(ITEMS["steps"], QUICK, num_seeds=2))
    groups = grouped(missing_runs(wanted, KeptRuns(tmp_path)), RunCosts())
    assert [group[0].seed for group in groups] == [0] * (len(groups) // 2) + [1] * (len(groups) // 2)
    arms = [[run.point.arm for run in group] for group in groups]
    assert sorted(arm for group in arms for arm in group) == sorted([*ARMS] * 2)
    for first, *others in arms:
        assert not ARMS[first].leader
        assert all(ARMS[arm].leader == first for arm in others)
    for arm, own in ARMS.items():  # nobody waits for a leader in another group
        assert all(own.leader in group for group in arms if arm in group and own.leader)
    followers = [run for run in wanted if run.point.arm not in ("NUFM", "uniform")]
    assert all(len(group) == 1 for group in grouped(followers, RunCosts()))


@pytest.mark.parametrize(
    "changes",
    [
        {"figures": {}},
        {"figures": {"loss": 0.5}},
        {"test_readings": {"3": {}}},
        {"test_readings": {"3": {"one step": {"accuracy": 0.5}}}},
    ],
)
def test_a_finished_run_without_the_figures_of_a_run_is_one_line(tmp_path, changes) -> None:
    run = next(wanted_runs(ITEMS["fig-4"], QUICK, num_seeds=1))
    store = KeptRuns(tmp_path / "runs")
    store.add(replace(kept(run.key), **changes))
    with pytest.raises(RunError, match=f"the finished run {run.key} of .*jsonl does not have the figures"):
        run.found(store)
