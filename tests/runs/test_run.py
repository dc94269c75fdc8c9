"""Runs on disk: repeatable to the bit, resumable after a kill at any moment, readable by other tools."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from fedwave.data import dataset_from_arrays
from fedwave.errors import ConfigError, DivergenceError, RunError
from fedwave.experiments import load_experiment
from fedwave.experiments.build import build_simulation, load_experiment_dataset
from fedwave.runs.folder import RunFolder
from fedwave.runs.run import resume_run, run_experiment
from tests.runs.small_runs import StopAfter, contents, experiment, results


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run_experiment(experiment(), tmp_path_factory.mktemp("run") / "whole").path


def test_the_same_run_twice_is_bit_equal(finished: Path, tmp_path: Path) -> None:
    assert contents(run_experiment(experiment(), tmp_path / "again").path) == contents(finished)


def test_the_seed_draws_the_synthetic_data_too() -> None:
    data = [load_experiment_dataset(experiment(seed=seed)).fingerprint() for seed in (0, 0, 1)]
    assert data[0] == data[1] != data[2]


def test_another_seed_is_another_run(finished: Path, tmp_path: Path) -> None:
    other = contents(run_experiment(experiment(seed=1), tmp_path / "other").path)
    assert other["model"] != contents(finished)["model"]


@pytest.mark.parametrize("rounds", [1, 4])
@pytest.mark.parametrize("checkpoint_every", [1, 3])
def test_an_interrupted_run_resumes_to_the_same_bits(
    finished: Path, tmp_path: Path, rounds: int, checkpoint_every: int
) -> None:
    settings = experiment(execution={"checkpoint_every": checkpoint_every})
    with pytest.raises(KeyboardInterrupt):
        run_experiment(settings, tmp_path / "cut", observers=[StopAfter(rounds)])
    assert results(resume_run(tmp_path / "cut").path) == results(finished)


def test_evaluated_training_devices_are_the_same_after_a_stop_and_with_other_workers(tmp_path: Path) -> None:
    one, two = (
        experiment(evaluation={"training_devices": True}, execution={"workers": workers})
        for workers in (1, 2)
    )
    with pytest.raises(KeyboardInterrupt):
        run_experiment(one, tmp_path / "cut", observers=[StopAfter(3)])
    resumed = results(resume_run(tmp_path / "cut").path)
    assert resumed == results(run_experiment(two, tmp_path / "whole").path)
    assert all(float(row["training_loss"]) > 0.0 for row in resumed["rounds.csv"])


def test_rows_beyond_the_checkpoint_and_half_written_ones_are_cut_off(finished: Path, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        run_experiment(experiment(), tmp_path / "cut", observers=[StopAfter(3)])
    for name in ("rounds.csv", "devices.csv", "heldout.csv"):
        with (tmp_path / "cut" / name).open("a") as file:
            file.write("3,1,2\n4,0.5")
    (tmp_path / "cut" / ".checkpoint.safetensors.partial").write_bytes(b"half")
    assert contents(resume_run(tmp_path / "cut").path) == contents(finished)


def test_resuming_a_finished_run_changes_nothing(finished: Path, tmp_path: Path) -> None:
    path = run_experiment(experiment(), tmp_path / "done").path
    resume_run(path)
    assert contents(path) == contents(finished)


def test_the_folder_can_be_read_without_fedwave(finished: Path) -> None:
    with (finished / "rounds.csv").open() as file:
        rounds = list(csv.DictReader(file))
    assert [row["round"] for row in rounds] == [str(k) for k in range(6)]
    assert all(len(row["selected_devices"].split()) == 3 for row in rounds)
    with (finished / "devices.csv").open() as file:
        devices = list(csv.DictReader(file))
    assert len(devices) == 6 * 6
    assert {"gradient_norm_0", "contribution", "is_selected"} <= set(devices[0])
    for row in rounds:
        chosen = [d["device"] for d in devices if d["round"] == row["round"] and d["is_selected"] == "1"]
        assert chosen == row["selected_devices"].split()
    environment = json.loads((finished / "environment.json").read_text())
    assert environment["seed"] == 0
    assert environment["versions"]["torch"]
    assert load_file(finished / "model.safetensors")["conv1.weight"].shape == (4, 1, 3, 3)
    # The folder says what it ran with: what was given, and the defaults of every part's options.
    read, given = load_experiment(finished / "config.toml"), experiment()
    assert read.selection.policy.kind == given.selection.policy.kind
    update = {"partition": given.partition, "model": given.model, "selection": given.selection}
    assert read.model_copy(update=update) == given
    assert read.selection.model_copy(update={"policy": given.selection.policy}) == given.selection
    by_default = {"classes_per_device": 2, "mean_samples_per_class": 5.0, "std_samples_per_class": 5.0}
    assert read.partition.options == by_default | given.partition.options
    assert read.model.options == {"weight_std": 0.1} | given.model.options


def test_the_contributions_in_the_table_follow_from_its_gradient_norms(finished: Path) -> None:
    sim = build_simulation(experiment())
    samples = dict(zip(sim.train.device_ids.tolist(), sim.train.num_samples.tolist(), strict=True))
    with (finished / "devices.csv").open() as file:
        for row in csv.DictReader(file):
            norm = float(row["gradient_norm_0"])
            expected = norm**2 - 2 * (1 + 1 / samples[int(row["device"])] ** 0.5) * norm
            assert float(row["contribution"]) == pytest.approx(expected, rel=1e-12)


def test_the_model_loads_into_its_plain_module(finished: Path) -> None:
    sim = build_simulation(experiment())
    module = sim.model.to_module(sim.initial_state().parameters)
    module.load_state_dict(load_file(finished / "model.safetensors"))
    checkpoint = RunFolder(finished).load_checkpoint()
    assert checkpoint is not None
    images = sim.heldout.query(np.array([0])).inputs
    stacked = {name: value[None] for name, value in checkpoint.parameters.items()}
    torch.testing.assert_close(module(images[0]), sim.model.outputs(stacked, images)[0], rtol=1e-4, atol=1e-5)


def test_the_users_own_arrays_can_be_trained_on(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    data = dataset_from_arrays(rng.normal(size=(400, 6)), rng.integers(0, 3, 400))
    settings = experiment(model={"kind": "softmax"}, num_rounds=2)
    result = run_experiment(settings, tmp_path / "own", dataset=data)
    assert result.summary["num_parameters"] == 6 * 3 + 3


def test_resuming_on_other_data_is_refused(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    inputs, labels = rng.normal(size=(400, 6)), rng.integers(0, 3, 400)
    settings = experiment(model={"kind": "softmax"})
    with pytest.raises(KeyboardInterrupt):
        run_experiment(
            settings, tmp_path / "a", dataset=dataset_from_arrays(inputs, labels), observers=[StopAfter(2)]
        )
    inputs[0, 0] += 1
    with pytest.raises(RunError, match="was started on other data: fingerprint"):
        resume_run(tmp_path / "a", dataset=dataset_from_arrays(inputs, labels))


def test_divergence_keeps_the_last_good_checkpoint(tmp_path: Path) -> None:
    settings = experiment(algorithm={"meta_lr": 1e30, "inner_lr": 0.001}, evaluation={"every": 6})
    with pytest.raises(DivergenceError, match="round 1 on device"):
        run_experiment(settings, tmp_path / "bad")
    checkpoint = RunFolder(tmp_path / "bad").load_checkpoint()
    assert checkpoint is not None
    assert checkpoint.next_round == 1


def test_a_folder_that_holds_a_run_or_cannot_be_written_is_refused(finished: Path, tmp_path: Path) -> None:
    with pytest.raises(RunError, match="already holds a run. Resume it with: fedwave resume"):
        run_experiment(experiment(), finished)
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match="cannot write to the output folder .*Not a directory. Choose another"):
        run_experiment(experiment(), tmp_path / "file" / "run")
    with pytest.raises(RunError, match="is not a run folder"):
        resume_run(tmp_path)


def test_a_run_is_written_over_where_that_is_asked_for_and_nothing_else_is(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    first = run_experiment(experiment(num_rounds=2), folder)
    with pytest.raises(RunError, match="already holds a run"):
        run_experiment(experiment(num_rounds=1), folder)
    with pytest.raises(ConfigError, match="model must be"):
        run_experiment(experiment(num_rounds=1), folder, overwrite=True, model=lambda shape, outputs: None)
    assert (folder / "summary.json").exists()  # what is wrong with the new run costs no old one
    second = run_experiment(experiment(num_rounds=1), folder, overwrite=True, model="softmax")
    assert (first.summary["num_rounds"], second.summary["num_rounds"]) == (2, 1)
    assert 'kind = "softmax"' in (folder / "config.toml").read_text()
    (folder / "notes.txt").write_text("mine")
    with pytest.raises(RunError, match="is not overwritten: beside a run it holds notes.txt"):
        run_experiment(experiment(num_rounds=1), folder, overwrite=True)
    assert (folder / "summary.json").exists()
    assert (folder / "notes.txt").read_text() == "mine"
    fresh = run_experiment(experiment(num_rounds=1), tmp_path / "new", overwrite=True)
    assert fresh.summary["num_rounds"] == 1
