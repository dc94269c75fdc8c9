"""A device of an experiment on a node of its own evaluates as the experiment does."""

from __future__ import annotations

from fedwave.flower import (
    client_app,
    device_of_experiment,
    initial_arrays,
    simulation_of,
    strategy_of_experiment,
)
from tests.flower.fake_grid import FakeGrid


def test_a_device_of_the_experiment_evaluates_the_model_after_adaptation() -> None:
    config = {"experiment": "digits/nufm", "overrides": "partition.num_devices=16 selection.num_selected=3"}
    simulation = simulation_of(config)
    grid = FakeGrid(client_app(device_of_experiment), len(simulation.train), config)
    server = strategy_of_experiment(simulation, evaluate_every=1)
    result = server.start(grid, initial_arrays(simulation), num_rounds=1)
    figures = result.evaluate_metrics_clientapp[1]
    assert set(figures) == {"loss", "accuracy"}
    assert 0 < figures["loss"] < 5
    assert 0 <= figures["accuracy"] <= 1
