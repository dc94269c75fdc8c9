"""Regression end to end: sine waves, one a device, learnt by a federation and checked with numpy alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from safetensors.numpy import load_file

from fedwave.cli.run_tables import cost_table, final_table
from fedwave.experiments import Experiment, experiment_from
from fedwave.experiments.build import build_simulation
from fedwave.plots.runs import plot_runs, run_chart
from fedwave.runs.compare import read_run
from fedwave.runs.folder import RunFolder
from fedwave.runs.run import run_experiment

INNER_LR, NUM_STEPS = 0.02, 5


def sine_waves(**changes: Any) -> Experiment:
    return experiment_from(
        {
            "name": "sines",
            "num_rounds": 60,
            "data": {"dataset": {"kind": "sinusoids", "num_devices": 40, "samples_per_device": 20}},
            "partition": {"kind": "given", "shots": 10},
            "model": {"kind": "mlp", "hidden": [40, 40]},
            "algorithm": {
                "inner_lr": INNER_LR,
                "meta_lr": 0.03,
                "num_local_steps": 5,
                "server_step": {"kind": "momentum", "momentum": 0.9},
            },
            "selection": {"policy": "uniform", "num_selected": 10},
            "evaluation": {"every": 15, "num_steps": NUM_STEPS},
            **changes,
        }
    )


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run_experiment(sine_waves(), tmp_path_factory.mktemp("run") / "sines").path


# The evaluation once more, in numpy and by hand: three layers, ReLU between them, float64 -------------------

Layers = list[tuple[np.ndarray, np.ndarray]]  # weights (out, in) and biases


def layers_of(state: dict[str, np.ndarray]) -> Layers:
    return [
        (state[f"linear{i}.weight"].astype(np.float64), state[f"linear{i}.bias"].astype(np.float64))
        for i in (1, 2, 3)
    ]


def forward(layers: Layers, x: np.ndarray) -> list[np.ndarray]:
    """The input of each layer, and the output."""
    values = [x]
    for i, (weight, bias) in enumerate(layers):
        out = values[-1] @ weight.T + bias
        values.append(np.maximum(out, 0.0) if i < 2 else out)
    return values


def one_step(layers: Layers, x: np.ndarray, y: np.ndarray) -> Layers:
    """Gradient descent on the mean squared error, by back-propagation."""
    values = forward(layers, x)
    slope = 2.0 * (values[-1] - y) / len(x)
    after = []
    for i in (2, 1, 0):
        weight, bias = layers[i]
        after.append((weight - INNER_LR * slope.T @ values[i], bias - INNER_LR * slope.sum(0)))
        slope = (slope @ weight) * (values[i] > 0)
    return after[::-1]


def by_hand(state: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """The mean squared and mean absolute error of every held-out device after adaptation."""
    pool = build_simulation(sine_waves()).heldout
    data = pool.dataset
    assert data.targets is not None
    inputs = data.inputs.astype(np.float64)
    inputs = (inputs - inputs.mean(0)) / (inputs.std(0) + 0.001)
    squared, absolute = [], []
    for device in pool.devices:
        layers = layers_of(state)
        for _ in range(NUM_STEPS):
            layers = one_step(layers, inputs[device.support], data.targets[device.support])
        error = forward(layers, inputs[device.query])[-1] - data.targets[device.query]
        squared.append(np.mean(error**2))
        absolute.append(np.mean(np.abs(error)))
    return np.array(squared), np.array(absolute)


def test_the_errors_in_the_tables_are_those_that_numpy_finds(finished: Path) -> None:
    table = RunFolder(finished).table("heldout.csv")
    last = table["round"] == 59
    squared, absolute = by_hand(load_file(finished / "model.safetensors"))
    assert len(squared) == last.sum() == 20
    assert_allclose(table["loss"][last], squared, rtol=1e-3)
    assert_allclose(table["mean_absolute_error"][last], absolute, rtol=1e-3)
    run = read_run(finished)
    assert run.last("heldout_loss") == pytest.approx(squared.mean(), rel=1e-3)
    assert run.last("heldout_mean_absolute_error") == pytest.approx(absolute.mean(), rel=1e-3)


def test_the_federation_learns_to_learn_a_sine(finished: Path) -> None:
    sim = build_simulation(sine_waves())
    start = sim.model.to_state_dict(sim.initial_state().parameters)
    before, _ = by_hand({name: value.numpy() for name, value in start.items()})
    after, _ = by_hand(load_file(finished / "model.safetensors"))
    # One function for all can do no better than 1.6 cos x; its error on these devices is the one to beat.
    data = sim.heldout.dataset
    assert data.targets is not None
    own = [device.query for device in sim.heldout.devices]
    compromise = [np.mean((1.6 * np.cos(data.inputs[q]) - data.targets[q]) ** 2) for q in own]
    assert after.mean() < 0.4 * before.mean()
    assert after.mean() < 0.7 * np.mean(compromise)


def test_the_summary_names_task_and_metric_and_takes_the_smallest_error_for_the_best(finished: Path) -> None:
    summary = RunFolder(finished).read_json("summary.json")
    assert (summary["task"], summary["metric"]) == ("regression", "mean_absolute_error")
    measured = RunFolder(finished).table()["heldout_mean_absolute_error"]
    assert np.isfinite(measured).sum() == 4
    assert summary["best_heldout_mean_absolute_error"] == np.nanmin(measured)
    assert summary["final"]["heldout_mean_absolute_error"] == measured[-1]
    assert not [name for name in RunFolder(finished).table() if "accuracy" in name]


def test_runs_of_a_regression_are_compared_and_drawn(finished: Path, tmp_path: Path) -> None:
    run = read_run(finished)
    values = run.heldout_metric
    target = float(np.nanmin(values)) * 1.01
    cost = run.cost_of_reaching(target)
    assert cost is not None
    assert cost.rounds == int(np.flatnonzero(values <= target)[0]) + 1
    assert final_table([run]).row_count == cost_table([run]).row_count == 1
    panel = run_chart([run]).panels[-1]
    assert panel.y_label == "held-out mean absolute error"
    assert plot_runs([run], tmp_path / "curve.png").read_bytes().startswith(b"\x89PNG")
