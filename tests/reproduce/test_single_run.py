"""What is kept of a run: the figures of its rounds, and how its allocations came about."""

from __future__ import annotations

import math
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest

from fedwave.experiments import load_experiment
from fedwave.experiments.build import build_simulation
from fedwave.reproduce.single_run import _planning, accuracy_after, figures_of, single_run
from fedwave.runs.kept_runs import KeptRun
from fedwave.runs.run import play_rounds
from tests.runs.small_runs import experiment as small_experiment

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
