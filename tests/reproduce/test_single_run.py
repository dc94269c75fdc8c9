"""What is kept of a run: the figures of its rounds, and how its allocations came about."""

from __future__ import annotations

import math
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest

from fedwave.devices.base import HeldOutResult
from fedwave.experiments import load_experiment
from fedwave.experiments.build import build_simulation, faulty_devices
from fedwave.learning.tasks import Classification
from fedwave.reproduce.single_run import (
    SeenRounds,
    _planning,
    accuracy_after,
    figures_of,
    single_run,
    worst_tenth,
)
from fedwave.runs.kept_runs import KeptRun
from fedwave.runs.run import play_rounds
from tests.runs.small_runs import experiment as small_experiment

METRIC = Classification.metric
SMALL = ["num_rounds=3", "partition.num_devices=16", "model.channels=[4]", "execution.workers=1"]


def test_the_accuracy_of_a_round_is_that_of_the_end_or_of_a_test_reading() -> None:
    readings = {"2": {"one step": {"accuracy": 0.5}, "no adaptation": {"accuracy": 0.1}}}
    run = KeptRun("k", "", {}, 3, 1.0, 0, {"accuracy": 0.7}, {}, readings)
    assert accuracy_after(run, 3) == 0.7
    assert accuracy_after(run, 2) == 0.5
    assert math.isnan(accuracy_after(run, 1))


def test_figures_are_those_of_the_rounds() -> None:
    rounds = np.arange(1.0, 24.0)
    columns = {
        "heldout_loss": 1.0 / rounds,
        "heldout_accuracy": rounds / 100,
        "train_loss": 2.0 / rounds,
        "energy_j": np.where(rounds > 3, np.nan, rounds**2),
        "num_received": np.full(23, np.nan),
        "cpu_time_s": rounds,
        "falls": np.array([0.0, 2.0, 1.0]),
    }
    found = figures_of(columns, is_timed=True)
    assert (found["loss"], found["accuracy"]) == (1 / 23, 0.23)
    assert (found["loss_19"], found["train_loss_19"]) == (1 / 19, 2 / 19)
    assert found["energy_j"] == pytest.approx(14 / 3)
    assert found["energy_j_median"] == 4.0
    assert (found["falls"], found["cpu_time_s"]) == (3.0, 12.0)
    for name in ("received", "delay_s", "accuracy_pooled"):
        assert math.isnan(found[name])
    assert math.isnan(figures_of(columns, is_timed=False)["cpu_time_s"])
    short = {name: values[:18] for name, values in columns.items()}
    assert math.isnan(figures_of(short, is_timed=True)["loss_19"])


def test_iterations_and_falls_are_those_of_the_plans() -> None:
    experiment = load_experiment("digits/ural", ["num_rounds=3", "model.channels=[4]", "execution.workers=1"])
    simulation = build_simulation(experiment)
    played = list(play_rounds(simulation, simulation.initial_state()))
    traces = [one.record.plan.allocation.trace for one in played]
    assert [one.state.next_round for one in played] == [1, 2, 3]
    found = single_run(experiment).figures
    assert found["iterations"] == np.mean([len(trace) for trace in traces]) > 1.0
    assert found["falls"] == sum(sum(b < a for a, b in pairwise(t)) for t in traces)


def test_a_fall_of_the_objective_is_counted_and_rounding_is_not() -> None:
    plan = SimpleNamespace(allocation=SimpleNamespace(trace=np.array([5.0, 7.0, 6.0, 6.0 - 1e-12, 9.0])))
    assert _planning(plan) == {"iterations": 5.0, "falls": 1.0}
    assert all(math.isnan(value) for value in _planning(None).values())


def test_a_run_without_a_cell_has_no_iterations() -> None:
    found = single_run(load_experiment("digits/nufm", [*SMALL, "selection.num_selected=2"])).figures
    for name in ("iterations", "falls", "energy_j", "loss_19"):
        assert math.isnan(found[name])
    assert found["loss"] > 0.0


def test_the_test_is_read_at_the_end_where_that_is_asked_for() -> None:
    experiment = load_experiment("digits/nufm", [*SMALL, "selection.num_selected=2"])
    assert single_run(experiment).test_readings == {}
    run = single_run(experiment, with_readings=True)
    assert set(run.test_readings) == {"3"}  # and in the paper's round, which this run does not reach
    assert run.test_readings["3"]["one step"]["accuracy"] == run.figures["accuracy"]


def test_data_that_is_drawn_from_the_seed_is_drawn_from_that_of_the_run() -> None:
    experiment = small_experiment(seed=5, num_rounds=1)
    simulation = build_simulation(experiment)
    (played,) = play_rounds(simulation, simulation.initial_state())
    assert single_run(experiment).figures["loss"] == played.record.columns["heldout_loss"]


def test_a_run_that_diverges_is_kept_as_far_as_it_went() -> None:
    run = single_run(load_experiment("digits/nufm", [*SMALL, "num_rounds=9", "algorithm.meta_lr=1e6",
                                                     "selection.num_selected=2"]))  # fmt: skip
    played = int(run.figures["rounds_played"])
    assert played < 9
    assert len(run.curves["heldout_loss"]) == run.num_rounds == 9
    assert np.isnan(run.curve("heldout_loss")[played:]).all()
    for name in ("accuracy", "loss", "accuracy_worst_tenth"):
        assert math.isnan(run.figures[name])
    assert run.curves.keys() >= {"heldout_loss", "heldout_accuracy", "update_norm"}


def test_who_was_never_chosen_and_how_often_the_faulty_were_is_counted() -> None:
    experiment = load_experiment("digits/nufm", [*SMALL, "faults.num_devices=2", "faults.kind=liars"])
    seen = SeenRounds(experiment, 8)
    faulty = faulty_devices(experiment, 8)
    honest = np.setdiff1d(np.arange(8), faulty)
    row = {"heldout_loss": 1.0, "cpu_time_s": 1.0}
    result = HeldOutResult(np.arange(20), np.ones(20), np.ones(20), np.arange(20) / 20.0, METRIC)
    seen.add(row, np.sort([faulty[0], honest[0]]), result)
    seen.add(row, honest[:2], result)
    seen.add(row, np.sort([faulty[0], faulty[1], honest[2], honest[3]]), result)
    found = seen.figures(is_timed=False)
    assert found["never_chosen"] == 2 / 8
    assert found["faulty_chosen"] == pytest.approx((2 / 3 + 1 / 3) / 2)
    assert found["faulty_uploads"] == 3 / 8
    assert found["accuracy_worst_tenth"] == pytest.approx(0.025)
    assert (
        worst_tenth(HeldOutResult(np.arange(3), np.ones(3), np.ones(3), np.array([0.5, 0.25, 1.0]), METRIC))
        == 0.25
    )
    honest_run = SeenRounds(load_experiment("digits/nufm", SMALL), 8)
    honest_run.add(row, honest[:2], result)
    assert math.isnan(honest_run.figures(is_timed=False)["faulty_chosen"])


def test_curves_of_training_devices_are_kept_where_they_were_evaluated() -> None:
    settings = [*SMALL, "selection.num_selected=2"]
    plain = single_run(load_experiment("digits/nufm", settings))
    also = single_run(load_experiment("digits/nufm", [*settings, "evaluation.training_devices=true"]))
    assert also.key == plain.key
    assert set(also.curves) - set(plain.curves) == {"training_loss", "training_accuracy"}
    for name in plain.curves:
        assert plain.curves[name] == also.curves[name]
    assert math.isnan(plain.figures["training_loss"])
    assert also.figures["training_loss"] == pytest.approx(also.curves["training_loss"][-1], rel=1e-6)
    assert accuracy_after(also, 2) == also.curves["heldout_accuracy"][1]
    assert math.isnan(accuracy_after(also, 19))
