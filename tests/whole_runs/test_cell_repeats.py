"""Runs over a cell again, interrupted, or by another scheme: the same bits, channels and luck."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from fedwave.experiments.build import build_simulation
from fedwave.runs.run import resume_run, run_experiment
from tests.experiments.cell_tables import (
    CELL_SCHEMES,
    PAPER_CELL,
    STREET_CELL,
    cell_of,
    device_column,
    experiment,
    rows,
)
from tests.runs.small_runs import StopAfter, contents, results


@pytest.fixture(scope="module")
def street_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Eight rounds of URAL in a street cell that fades and loses uploads, with reports and idling."""
    return run_experiment(experiment(STREET_CELL, num_rounds=8), tmp_path_factory.mktemp("run") / "s").path


def test_the_same_run_over_a_fading_and_lossy_cell_is_bit_equal(street_run: Path, tmp_path: Path) -> None:
    again = run_experiment(experiment(STREET_CELL, num_rounds=8), tmp_path / "again").path
    assert contents(again) == contents(street_run)
    table = rows(street_run, "rounds.csv")
    assert sum(int(row["num_selected"]) for row in table) > sum(int(row["num_received"]) for row in table) > 0


@pytest.mark.parametrize(("stop_after", "checkpoint_every"), [(1, 1), (5, 3)])
def test_an_interrupted_run_goes_on_counting_to_the_same_bits(
    street_run: Path, tmp_path: Path, stop_after: int, checkpoint_every: int
) -> None:
    settings = experiment(STREET_CELL, num_rounds=8, execution={"checkpoint_every": checkpoint_every})
    with pytest.raises(KeyboardInterrupt):
        run_experiment(settings, tmp_path / "cut", observers=[StopAfter(stop_after)])
    assert results(resume_run(tmp_path / "cut").path) == results(street_run)


def test_the_number_of_workers_changes_nothing(street_run: Path, tmp_path: Path) -> None:
    settings = experiment(STREET_CELL, num_rounds=8, execution={"workers": 3, "chunk_samples": 0})
    assert results(run_experiment(settings, tmp_path / "three").path) == results(street_run)


def test_the_scheme_changes_neither_channel_nor_data_nor_model_nor_luck() -> None:
    cell = {**STREET_CELL, "losses": {"dropout_probability": 0.5}}
    sims = {scheme: build_simulation(experiment(cell, scheme=scheme)) for scheme in CELL_SCHEMES}
    first = sims["ural"]
    start = first.initial_state().parameters
    for sim in sims.values():
        assert np.array_equal(sim.train.device_ids, first.train.device_ids)
        assert all(
            np.array_equal(one.query, other.query)
            for one, other in zip(sim.train.devices, first.train.devices, strict=True)
        )
        assert all(torch.equal(value, start[name]) for name, value in sim.initial_state().parameters.items())
        for k in (0, 3):
            one, other = cell_of(sim).draw(k), cell_of(first).draw(k)
            assert np.array_equal(one.channel_gain, other.channel_gain)
            assert np.array_equal(one.interference_w, other.interference_w)
        assert np.array_equal(cell_of(sim).fleet.max_frequency_hz, cell_of(first).fleet.max_frequency_hz)


def test_a_device_drops_out_under_one_scheme_if_it_does_under_another(tmp_path: Path) -> None:
    cell = {**PAPER_CELL, "num_blocks": 5, "losses": {"dropout_probability": 0.5}}
    fate: dict[tuple[int, int], set[float]] = {}
    for scheme in CELL_SCHEMES:
        folder = run_experiment(experiment(cell, scheme=scheme), tmp_path / scheme).path
        for k in range(3):
            received = device_column(folder, k, "is_received")
            for position in np.flatnonzero(device_column(folder, k, "is_selected")).tolist():
                fate.setdefault((k, position), set()).add(received[position])
    assert len(fate) > 15
    assert all(len(seen) == 1 for seen in fate.values())
    assert {value for seen in fate.values() for value in seen} == {0.0, 1.0}


def test_a_redrawn_channel_differs_between_rounds_and_a_static_one_does_not() -> None:
    for preset, is_redrawn in (("paper", False), ("paper-redrawn", True)):
        cell = cell_of(build_simulation(experiment({"preset": preset})))
        first, second = cell.draw(0), cell.draw(1)
        for name in ("channel_gain", "interference_w"):
            assert np.array_equal(getattr(first, name), getattr(second, name)) is not is_redrawn
