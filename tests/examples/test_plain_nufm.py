"""fedwave's rounds are those of the plain loop in examples/: same devices, same models up to rounding."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from numpy.testing import assert_array_equal

from examples import plain_nufm
from fedwave import load_experiment
from fedwave.experiments.build import build_simulation
from fedwave.simulation.simulation import Simulation

NUM_ROUNDS = 4


def by_hand(simulation: Simulation, **options: Any) -> Iterator[tuple[list[int], plain_nufm.Theta]]:
    """Return the rounds of the plain loop from the simulation's first model, in the preset's settings."""
    module = simulation.model.to_module(simulation.initial_state().parameters).double()
    devices = plain_nufm.plain_devices(simulation.train.dataset, simulation.train.devices)
    return plain_nufm.algorithm_1(
        module, devices, **{"inner_lr": 0.02, "meta_lr": 0.02, "num_selected": 10, **options}
    )


@pytest.mark.parametrize(
    ("settings", "options"),
    [
        ([], {}),
        (["algorithm.num_local_steps=3", "model.kind=mlp", "seed=1"], {"num_local_steps": 3}),
        (
            ["selection.similarity_penalty=0.3", "selection.variance_penalty=4.0", "model.kind=softmax"],
            {"similarity_penalty": 0.3, "variance_penalty": 4.0},
        ),
        (["selection.num_selected=1"], {"num_selected": 1}),
        (["selection.num_selected=30"], {"num_selected": 30}),
    ],
    ids=["as the preset", "three local steps", "other penalties", "one uploads", "all upload"],
)
def test_every_round_selects_the_same_devices_and_ends_in_the_same_model(
    settings: list[str], options: dict[str, Any]
) -> None:
    experiment = load_experiment("digits/nufm", [f"num_rounds={NUM_ROUNDS}", *settings])
    simulation = build_simulation(experiment)
    state, devices = simulation.initial_state(), simulation.open_devices()
    plain = by_hand(simulation, **options)
    start = simulation.model.to_state_dict(state.parameters)
    try:
        for _ in range(NUM_ROUNDS):
            selected, theta = next(plain)
            state, record = simulation.run_round(state, devices)
            assert_array_equal(simulation.train.device_ids[selected], record.columns["selected_devices"])
            ours = simulation.model.to_state_dict(state.parameters)
            torch.testing.assert_close(ours, theta, rtol=0.0, atol=2e-6, check_dtype=False)
    finally:
        devices.close()
    moved = max(float((ours[name] - start[name]).abs().max()) for name in ours)
    assert moved > 1e-3  # so that the tolerance above means something


def test_the_devices_that_upload_decide_the_model() -> None:
    """Were other devices averaged, the models would be far more than rounding apart."""
    simulation = build_simulation(load_experiment("digits/nufm", ["num_rounds=1"]))
    models = [next(by_hand(simulation, num_selected=count))[1] for count in (10, 11)]
    apart = max(float((models[0][name] - models[1][name]).abs().max()) for name in models[0])
    assert apart > 1e-4


def test_the_algorithm_is_short() -> None:
    parts = (plain_nufm.algorithm_1, plain_nufm.local_update, plain_nufm.meta_gradient)
    lines = [line for part in parts for line in inspect.getsource(part).splitlines()]
    assert sum(bool(line.strip()) for line in lines) <= 60


def test_the_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    plain_nufm.main()
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 5
    assert all("same devices: True" in line for line in lines)
