"""fedwave's rounds are those of the plain loop in examples/: same devices, same models up to rounding."""

from __future__ import annotations

import importlib.util
import inspect
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from numpy.testing import assert_array_equal

from fedwave import load_experiment
from fedwave.experiments.build import build_simulation

FILE = Path(__file__).parents[2] / "examples" / "plain_algorithm_1.py"
NUM_ROUNDS = 4


@pytest.fixture(scope="module")
def example() -> Any:
    spec = importlib.util.spec_from_file_location("plain_algorithm_1", FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("settings", "options"),
    [
        ([], {}),
        (["algorithm.num_local_steps=3", "model.kind=mlp", "seed=1"], {"num_local_steps": 3}),
        (
            ["selection.similarity_penalty=0.3", "selection.variance_penalty=4.0", "model.kind=softmax"],
            {"penalties": (0.3, 4.0)},
        ),
        (["selection.num_selected=1"], {"num_selected": 1}),
        (["selection.num_selected=30"], {"num_selected": 30}),
    ],
    ids=["as the preset", "three local steps", "other penalties", "one uploads", "all upload"],
)
def test_every_round_selects_the_same_devices_and_ends_in_the_same_model(
    example: Any, settings: list[str], options: dict[str, Any]
) -> None:
    experiment = load_experiment("digits/nufm", [f"num_rounds={NUM_ROUNDS}", *settings])
    simulation = build_simulation(experiment)
    state, devices = simulation.initial_state(), simulation.open_devices()
    plain = example.algorithm_1(
        simulation.model.to_module(state.parameters),
        example.plain_devices(simulation.train),
        **{"inner_lr": 0.02, "meta_lr": 0.02, "num_selected": 10, **options},
    )
    start = simulation.model.to_state_dict(state.parameters)
    try:
        for _ in range(NUM_ROUNDS):
            selected, theta = next(plain)
            state, record = simulation.run_round(state, devices)
            assert_array_equal(simulation.train.device_ids[selected], record.columns["selected_devices"])
            ours = simulation.model.to_state_dict(state.parameters)
            torch.testing.assert_close(ours, theta, rtol=0.0, atol=2e-6)
    finally:
        devices.close()
    moved = max(float((ours[name] - start[name]).abs().max()) for name in ours)
    assert moved > 1e-3  # so that the tolerance above means something


def test_the_devices_that_upload_decide_the_model(example: Any) -> None:
    """Were other devices averaged, the models would be far more than rounding apart."""
    simulation = build_simulation(load_experiment("digits/nufm", ["num_rounds=1"]))
    parameters = simulation.initial_state().parameters
    models = []
    for count in (10, 11):
        plain = example.algorithm_1(
            simulation.model.to_module(parameters),
            example.plain_devices(simulation.train),
            inner_lr=0.02,
            meta_lr=0.02,
            num_selected=count,
        )
        models.append(next(plain)[1])
    apart = max(float((models[0][name] - models[1][name]).abs().max()) for name in models[0])
    assert apart > 1e-4


def test_the_algorithm_is_short(example: Any) -> None:
    lines = inspect.getsource(example.algorithm_1).splitlines()
    assert sum(bool(line.strip()) for line in lines) <= 40


def test_the_example_runs(example: Any, capsys: pytest.CaptureFixture[str]) -> None:
    example.main()
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 5
    assert all("same devices: True" in line for line in lines)
