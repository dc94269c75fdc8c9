"""A run that starts from a trained model: the same parameters at round 0; another model is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from fedwave.errors import ModelError
from fedwave.experiments import load_experiment
from fedwave.experiments.build import build_simulation
from fedwave.runs.folder import RunFolder
from fedwave.runs.run import resume_run, run_experiment
from tests.runs.small_runs import AskToStopAfter, experiment, results


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The model of a run of the small experiment, a CNN."""
    result = run_experiment(experiment(num_rounds=2), tmp_path_factory.mktemp("run") / "first")
    return result.path / "model.safetensors"


def test_a_run_starts_with_the_parameters_of_the_file(trained: Path) -> None:
    sim = build_simulation(experiment(model={"path": str(trained)}))
    start = sim.model.to_state_dict(sim.initial_state().parameters)
    expected = load_file(trained)
    assert set(start) == set(expected)
    assert all(torch.equal(start[name], value) for name, value in expected.items())


def test_the_file_is_that_of_torchs_own_layers(trained: Path) -> None:
    """Who loads it elsewhere needs nothing of fedwave: (out, in, 3, 3), and features in C, H, W order."""
    values = load_file(trained)
    sim = build_simulation(experiment(model={"path": str(trained)}))
    assert values["conv1.weight"].shape == (4, 1, 3, 3)
    images = torch.randn(5, 1, 8, 8)
    layers = torch.nn.Sequential(
        torch.nn.Conv2d(1, 4, 3, padding=1),
        torch.nn.LeakyReLU(0.2),
        torch.nn.MaxPool2d(3, stride=2, ceil_mode=True),  # SAME of an even extent
        torch.nn.Flatten(),
        torch.nn.Linear(4 * 4 * 4, 4),
    )
    names = {
        "0.weight": "conv1.weight",
        "0.bias": "conv1.bias",
        "4.weight": "linear.weight",
        "4.bias": "linear.bias",
    }
    layers.load_state_dict({name: values[theirs] for name, theirs in names.items()})
    ours = {name: value[None] for name, value in sim.initial_state().parameters.items()}
    torch.testing.assert_close(layers(images), sim.model.outputs(ours, images[None])[0])


def test_one_run_after_another_is_one_long_run(trained: Path, tmp_path: Path) -> None:
    # Without random batches nothing but the model is carried over; evaluated before and after the border.
    plain = {"scheme": "nufm", "selection": {"num_selected": 3}}
    long = run_experiment(
        experiment(num_rounds=4, algorithm={"query_batch_size": 99}, **plain), tmp_path / "long"
    )
    first = run_experiment(
        experiment(num_rounds=2, algorithm={"query_batch_size": 99}, **plain), tmp_path / "first"
    )
    second = run_experiment(
        experiment(
            num_rounds=2,
            algorithm={"query_batch_size": 99},
            model={"path": str(first.path / "model.safetensors")},
            **plain,
        ),
        tmp_path / "second",
    )
    whole, half = RunFolder(long.path).table(), RunFolder(second.path).table()
    for column in ("train_loss", "heldout_loss", "heldout_accuracy"):
        assert half[column].tolist() == whole[column][2:].tolist()
    assert (second.path / "model.safetensors").read_bytes() == (long.path / "model.safetensors").read_bytes()


def test_a_run_from_a_model_resumes_to_the_same_bits(trained: Path, tmp_path: Path) -> None:
    settings = experiment(num_rounds=3, model={"path": str(trained)})
    whole = run_experiment(settings, tmp_path / "whole").path
    run_experiment(settings, tmp_path / "cut", observers=[AskToStopAfter(1)])
    assert results(resume_run(tmp_path / "cut").path) == results(whole)
    assert load_experiment(tmp_path / "cut" / "config.toml").model.path == str(trained)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ({"kind": "cnn", "channels": [5]}, "of the state dict must have shape"),
        ({"kind": "cnn", "channels": [4, 4]}, "The state dict lacks"),
        ({"kind": "mlp"}, "The state dict lacks linear1.weight and"),
    ],
)
def test_a_file_of_another_model_is_refused_in_one_line(
    trained: Path, tmp_path: Path, model: dict[str, object], message: str
) -> None:
    settings = experiment(model={**model, "path": str(trained)})
    with pytest.raises(ModelError) as caught:
        run_experiment(settings, tmp_path / "run")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "run").exists()


def test_a_file_that_is_missing_or_no_model_is_refused_in_one_line(trained: Path, tmp_path: Path) -> None:
    for name, content, message in (
        ("absent.safetensors", None, "does not exist. Give the model.safetensors of a run."),
        ("text.safetensors", b"no tensors here", "cannot be read as safetensors"),
        ("empty.safetensors", b"", "cannot be read as safetensors"),
    ):
        if content is not None:
            (tmp_path / name).write_bytes(content)
        with pytest.raises(ModelError) as caught:
            build_simulation(experiment(model={"path": str(tmp_path / name)})).initial_state()
        assert message in str(caught.value)
        assert name in str(caught.value)
        assert "\n" not in str(caught.value)
    wide = {name: value.double() for name, value in load_file(trained).items()}
    save_file(wide, tmp_path / "wide.safetensors")
    with pytest.raises(ModelError, match=r"must be torch\.float32, got torch\.float64"):
        build_simulation(experiment(model={"path": str(tmp_path / "wide.safetensors")})).initial_state()
