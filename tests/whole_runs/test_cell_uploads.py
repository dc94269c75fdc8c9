"""Uploads over a cell: what arrives enters the mean, as it was sent, and is as large as it should be."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from safetensors.torch import load_file

from fedwave.experiments.build import build_simulation
from fedwave.learning import local_update
from fedwave.learning.rules import MetaDescent
from fedwave.learning.tasks import Classification
from fedwave.runs.run import run_experiment
from fedwave.simulation.simulation import Simulation
from fedwave.simulation.state import State
from tests.experiments.cell_tables import PAPER_CELL, experiment, one_round, planner_of, rows
from tests.whole_runs.test_cell_runs import assert_tables_add_up


def mean_of(sim: Simulation, start: State, positions: list[int], bits: int = 32) -> dict[str, np.ndarray]:
    """The mean of these devices' models, each computed alone, with numpy's own rounding of the uploads."""
    arrived: dict[str, list[np.ndarray]] = {name: [] for name in start.parameters}
    for position in positions:
        at = np.array([position])
        update = local_update(
            sim.model,
            Classification(),
            MetaDescent(inner_lr=0.05, meta_lr=0.05),
            start.parameters,
            sim.train.support(at),
            [sim.train.query(at)],
        )
        for name, value in update.parameters.items():
            own, old = value[0].numpy(), start.parameters[name].numpy()
            change = own - old
            if bits == 16:
                scale = np.abs(change).max()
                own = old + (change / scale).astype(np.float16).astype(np.float32) * scale
            if bits == 8:
                level = np.abs(change).max() / np.float32(127)
                own = old + np.rint(change / level) * level
            arrived[name].append(own.astype(np.float64))
    return {name: np.mean(values, axis=0) for name, values in arrived.items()}


@pytest.mark.parametrize("bits", [32, 16, 8])
def test_only_what_arrives_enters_the_mean_as_it_was_sent(bits: int) -> None:
    cell = {
        **PAPER_CELL,
        "num_blocks": 6,
        "bits_per_parameter": bits,
        "losses": {"dropout_probability": 0.5},
    }
    sim, start, after, record = one_round(experiment(cell, scheme="nufm-greedy"))
    received = np.flatnonzero(record.device_columns["is_received"]).tolist()
    assert 0 < len(received) < 6 == record.columns["num_selected"]
    expected = mean_of(sim, start, received, bits)
    for name, value in after.parameters.items():
        assert_allclose(value.numpy(), expected[name], rtol=0, atol=3e-7)
    selected = np.flatnonzero(record.device_columns["is_selected"]).tolist()
    everyone = mean_of(sim, start, selected, bits)
    assert any(np.abs(after.parameters[n].numpy() - everyone[n]).max() > 1e-4 for n in everyone)


def test_fewer_bits_move_the_model_by_half_a_level_at_most() -> None:
    _, start, exact, _ = one_round(experiment(PAPER_CELL, scheme="nufm-greedy"))
    moved = []
    for bits in (16, 8):
        _, _, rounded, _ = one_round(
            experiment({**PAPER_CELL, "bits_per_parameter": bits}, scheme="nufm-greedy")
        )
        moved.append(
            max(float((rounded.parameters[n] - exact.parameters[n]).abs().max()) for n in exact.parameters)
        )
    largest = max(float((exact.parameters[n] - start.parameters[n]).abs().max()) for n in exact.parameters)
    assert 0 < moved[0] < moved[1] < 3 * largest / 127  # the mean's change is below the largest device's


@pytest.mark.parametrize(
    ("scheme", "cell", "note"),
    [
        ("nufm-greedy", {"losses": {"deadline_s": 1e-6}}, "no upload arrived, the model stays"),
        ("ru-random", {"losses": {"outage_snr_db": 100.0}}, "no upload arrived, the model stays"),
        ("ural", {"losses": {"dropout_probability": 1.0}}, "no upload arrived, the model stays"),
        ("ural", {"energy_weight": 1e9}, "nobody uploads, the model stays as it is: no upload is"),
        ("ural-ives", {"delay_weight": 1e9}, "nobody uploads, the model stays as it is: "),
    ],
)
def test_a_run_in_which_nobody_arrives_keeps_the_model_to_the_bit_and_says_so(
    tmp_path: Path, scheme: str, cell: dict[str, Any], note: str
) -> None:
    settings = experiment({**PAPER_CELL, **cell}, scheme=scheme)
    folder = run_experiment(settings, tmp_path / "run").path
    sim = build_simulation(settings)
    start = sim.model.to_state_dict(sim.initial_state().parameters)
    end = load_file(folder / "model.safetensors")
    assert all(torch.equal(end[name], value) for name, value in start.items())
    table = rows(folder, "rounds.csv")
    assert all(row["note"].startswith(note) and row["num_received"] == "0" for row in table)
    assert all(float(row["energy_j"]) > 0 for row in table)
    assert len({row["heldout_loss"] for row in table}) == 1
    assert_tables_add_up(folder)


@pytest.mark.parametrize(("over_cell", "without"), [("nufm-greedy", "nufm"), ("ru-random", "per-fedavg")])
def test_a_scheme_over_a_perfect_cell_is_the_scheme_without_a_cell(
    tmp_path: Path, over_cell: str, without: str
) -> None:
    one = run_experiment(experiment(PAPER_CELL, scheme=over_cell), tmp_path / "cell").path
    settings = experiment(scheme=without, selection={"num_selected": 3})
    other = run_experiment(settings, tmp_path / "plain").path
    assert (one / "model.safetensors").read_bytes() == (other / "model.safetensors").read_bytes()
    learnt = ("selected_devices", "train_loss", "heldout_loss", "heldout_accuracy", "num_computed")
    for row, same in zip(rows(one, "rounds.csv"), rows(other, "rounds.csv"), strict=True):
        assert {name: row[name] for name in learnt} == {name: same[name] for name in learnt}


def test_without_a_cell_there_is_no_account(tmp_path: Path) -> None:
    folder = run_experiment(experiment(selection={"num_selected": 3}), tmp_path / "run").path
    names = {*rows(folder, "rounds.csv")[0], *rows(folder, "devices.csv")[0]}
    assert not [n for n in names if n.endswith(("energy_j", "delay_s", "power_w")) or n in ("note", "block")]
    assert "cell" not in json.loads((folder / "summary.json").read_text())
    assert "cell" not in tomllib.loads((folder / "config.toml").read_text())
    assert not [n for n in load_file(folder / "checkpoint.safetensors") if n.startswith("ledger")]


# The size of an upload ------------------------------------------------------------------------------------


def model_bits(cell: dict[str, Any]) -> float:
    return planner_of(build_simulation(experiment(cell))).work.model_bits


def test_s_comes_from_the_model_and_its_bits() -> None:
    street = {"preset": "umi-3.5ghz"}  # softmax on 6 inputs and 4 classes: 28 parameters in 2 tensors
    assert model_bits(street) == 28 * 32
    assert model_bits({**street, "bits_per_parameter": 16}) == 28 * 16 + 2 * 32
    assert model_bits({**street, "bits_per_parameter": 8}) == 28 * 8 + 2 * 32
    assert model_bits({**street, "model_bits": 1e6}) == 1e6


def test_s_is_one_float32_model_in_the_papers_normalised_cell() -> None:
    assert model_bits({"preset": "paper"}) == 1.0
    assert model_bits({"preset": "paper", "bits_per_parameter": 16}) == 0.5
    assert model_bits({"preset": "paper", "bits_per_parameter": 8}) == 0.25


def test_half_the_bits_take_half_the_time_and_energy_at_the_same_power() -> None:
    whole, half = (
        one_round(experiment({**PAPER_CELL, "bits_per_parameter": bits}, scheme="nufm-random"))[3]
        for bits in (32, 16)
    )
    for name in ("upload_time_s", "upload_energy_j"):
        assert_allclose(half.device_columns[name], whole.device_columns[name] / 2, rtol=1e-12)
