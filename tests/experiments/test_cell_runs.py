"""Whole runs over a cell: the tables add up, the mean takes what arrives, and every bit comes again."""

from __future__ import annotations

import csv
import json
import math
import os
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from safetensors.torch import load_file

from fedwave.allocation import AllocationProblem, allocate, total_cost
from fedwave.data import DATASETS
from fedwave.experiments import Experiment, load_experiment
from fedwave.experiments.build import build_simulation
from fedwave.experiments.run import resume_run, run_experiment
from fedwave.learning import local_update
from fedwave.simulation.cell_scheduler import SCHEMES, CellScheduler
from fedwave.simulation.simulation import Simulation, State
from fedwave.simulation.workers import Workers
from fedwave.wireless.cell import Cell
from tests.experiments.cell_tables import PAPER_CELL, STREET_CELL, device_column, experiment, rows
from tests.experiments.test_run import StopAfter, contents

ENERGIES = ("compute_energy_j", "report_energy_j", "upload_energy_j", "idle_energy_j")


@pytest.fixture(scope="module", params=SCHEMES)
def paper_run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of each scheme over the paper's cell, with three blocks."""
    settings = experiment({**PAPER_CELL, "scheme": request.param}, name=request.param)
    return run_experiment(settings, tmp_path_factory.mktemp("paper") / request.param).path


@pytest.fixture(scope="module")
def street_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Eight rounds of URAL in a street cell that fades and loses uploads, with reports and idling."""
    return run_experiment(experiment(STREET_CELL, num_rounds=8), tmp_path_factory.mktemp("run") / "s").path


def assert_tables_add_up(folder: Path) -> None:
    """Add devices.csv up by itself and compare with rounds.csv and with the running totals."""
    clock, spent = 0.0, np.zeros(8)
    for k, row in enumerate(rows(folder, "rounds.csv")):
        by_kind = {name: device_column(folder, k, name) for name in ENERGIES}
        for name, column in by_kind.items():
            assert float(row[name]) == pytest.approx(math.fsum(column), rel=1e-12, abs=0)
        own = sum(by_kind.values())
        assert float(row["energy_j"]) == pytest.approx(math.fsum(own), rel=1e-12)
        spent = spent + own
        clock += float(row["delay_s"])
        assert_allclose(device_column(folder, k, "cumulative_energy_j"), spent, rtol=1e-12)
        assert float(row["cumulative_energy_j"]) == pytest.approx(math.fsum(spent), rel=1e-12)
        assert float(row["cumulative_delay_s"]) == pytest.approx(clock, rel=1e-12)
        assert int(row["num_selected"]) == device_column(folder, k, "is_selected").sum()
        assert int(row["num_received"]) == device_column(folder, k, "is_received").sum()
    cell = json.loads((folder / "summary.json").read_text())["cell"]
    assert cell["energy_j"] == pytest.approx(math.fsum(spent), rel=1e-12)
    assert cell["delay_s"] == pytest.approx(clock, rel=1e-12)
    assert cell["uploads"] == sum(int(row["num_selected"]) for row in rows(folder, "rounds.csv"))


def test_the_tables_of_every_scheme_add_up(paper_run: Path) -> None:
    assert_tables_add_up(paper_run)


def test_the_tables_add_up_with_losses_reports_and_idling(street_run: Path) -> None:
    assert_tables_add_up(street_run)
    for k, row in enumerate(rows(street_run, "rounds.csv")):
        busy = sum(device_column(street_run, k, f"{kind}_time_s") for kind in ("compute", "report", "upload"))
        idle = device_column(street_run, k, "idle_time_s")
        assert_allclose(busy + idle, float(row["delay_s"]), rtol=1e-9)
        assert_allclose(device_column(street_run, k, "idle_energy_j"), 0.01 * idle, rtol=1e-12)


def test_rounds_agree_with_the_definitions_of_problem_p(paper_run: Path) -> None:
    # Eq. (23)-(32) once more, from the decisions in devices.csv, the fleet and the channel alone.
    scheduler = build_simulation(load_experiment(paper_run / "config.toml")).scheduler
    assert isinstance(scheduler, CellScheduler)
    fleet, channel = scheduler.cell.fleet, scheduler.cell.draw(0)
    for k, row in enumerate(rows(paper_run, "rounds.csv")):
        computed = ~np.isnan(device_column(paper_run, k, "train_loss"))
        frequency = device_column(paper_run, k, "cpu_frequency_hz")
        power = device_column(paper_run, k, "transmit_power_w")
        block = device_column(paper_run, k, "block").astype(int)
        cycles = computed * fleet.cycles_per_sample * scheduler.num_samples
        compute_energy = fleet.capacitance / 2 * cycles * frequency**2
        compute_time = np.divide(cycles, frequency, out=np.zeros(8), where=computed)
        on = block >= 0
        rate = np.log2(1 + power[on] * channel.channel_gain[on] / (channel.interference_w[block[on]] + 1))
        energy = compute_energy.sum() + (power[on] / rate).sum()
        delay = compute_time.max() + (1 / rate).max(initial=0.0)
        assert float(row["energy_j"]) == pytest.approx(energy, rel=1e-10)
        assert float(row["delay_s"]) == pytest.approx(delay, rel=1e-10)
        assert (power <= fleet.max_power_w).all()
        assert (frequency <= fleet.max_frequency_hz).all()
        worth = device_column(paper_run, k, "scaled_contribution")[on].sum()
        assert float(row["contribution"]) == pytest.approx(worth, rel=1e-10)
        assert float(row["objective"]) == pytest.approx(worth - 0.02 * energy - 0.03 * delay, rel=1e-10)


def test_each_round_meets_its_own_channel_on_each_block(tmp_path: Path) -> None:
    # Random powers over a cell that fades anew: SNRs on both sides of the threshold.
    cell = {**STREET_CELL, "scheme": "nufm-random", "model_bits": 7e5, "losses": {"outage_snr_db": 15.0}}
    settings = experiment(cell, num_rounds=6)
    folder = run_experiment(settings, tmp_path / "run").path
    assert settings.cell is not None
    channel = Cell.build(settings.cell.radio, num_devices=8, seed=5)
    noise_w = 360e3 * 10 ** ((-174 + 5 - 30) / 10)  # thermal noise and the receiver's figure
    num_lost = 0
    for k, row in enumerate(rows(folder, "rounds.csv")):
        draw = channel.draw(k)
        selected = np.flatnonzero(device_column(folder, k, "is_selected"))
        block = device_column(folder, k, "block").astype(int)[selected]
        power = device_column(folder, k, "transmit_power_w")[selected]
        snr = power * draw.channel_gain[selected, block] / (draw.interference_w[block] + noise_w)
        expected = 7e5 / (360e3 * np.log2(1 + snr))
        assert_allclose(device_column(folder, k, "upload_time_s")[selected], expected, rtol=1e-9)
        arrives = snr >= 10**1.5
        assert device_column(folder, k, "is_received")[selected].tolist() == arrives.tolist()
        assert int(row["num_outage"]) == np.sum(~arrives)
        num_lost += int(row["num_outage"])
    assert 0 < num_lost < 18


def test_each_scheme_selects_as_it_says(paper_run: Path) -> None:
    scheme = tomllib.loads((paper_run / "config.toml").read_text())["cell"]["scheme"]
    for k, row in enumerate(rows(paper_run, "rounds.csv")):
        selected = np.flatnonzero(device_column(paper_run, k, "is_selected"))
        contribution = device_column(paper_run, k, "contribution")
        computed = np.flatnonzero(~np.isnan(contribution))
        if scheme.startswith("ru-"):
            assert selected.tolist() == computed.tolist()
            assert len(selected) == 3
        else:
            assert len(computed) == 8
        if scheme.startswith("nufm-"):
            assert selected.tolist() == sorted(np.argsort(-contribution, kind="stable")[:3].tolist())
        assert int(row["num_computed"]) == len(computed)


@pytest.mark.parametrize("paper_run", ["ural", "ural-ives"], indirect=True)
def test_ural_is_the_allocation_of_the_recorded_contributions(paper_run: Path) -> None:
    scheme = tomllib.loads((paper_run / "config.toml").read_text())["cell"]["scheme"]
    settings = load_experiment(paper_run / "config.toml")
    assert settings.cell is not None
    cell = Cell.build(settings.cell.radio, num_devices=8, seed=5)
    num_samples = build_simulation(settings).train.num_samples
    for k, row in enumerate(rows(paper_run, "rounds.csv")):
        draw = cell.draw(k)
        problem = AllocationProblem(
            contribution=device_column(paper_run, k, "contribution"),
            channel_gain=draw.channel_gain,
            interference_w=draw.interference_w,
            max_power_w=cell.fleet.max_power_w,
            workload_cycles=cell.fleet.cycles_per_sample * num_samples,
            max_frequency_hz=cell.fleet.max_frequency_hz,
            capacitance=cell.fleet.capacitance,
            model_bits=1.0,
            bandwidth_hz=1.0,
            noise_psd_w_per_hz=1.0,
            energy_weight=0.02,
            delay_weight=0.03,
        )
        expected = allocate(problem, SCHEMES[scheme][0])
        assert device_column(paper_run, k, "block").tolist() == expected.block_of_device.tolist()
        assert device_column(paper_run, k, "transmit_power_w").tolist() == expected.transmit_power_w.tolist()
        assert device_column(paper_run, k, "cpu_frequency_hz").tolist() == expected.cpu_frequency_hz.tolist()
        assert float(row["objective"]) == pytest.approx(total_cost(problem, expected), rel=1e-12)
        assert expected.num_selected > 0


# What enters the mean ---------------------------------------------------------------------------------------


def one_round(settings: Experiment) -> tuple[Simulation, State, State, Any]:
    sim = build_simulation(settings)
    start = sim.initial_state()
    with Workers(1) as workers:
        after, record = sim.run_round(start, workers)
    return sim, start, after, record


def mean_of(sim: Simulation, start: State, positions: list[int], bits: int = 32) -> dict[str, np.ndarray]:
    """The mean of these devices' models, each computed alone, with numpy's own rounding of the uploads."""
    arrived: dict[str, list[np.ndarray]] = {name: [] for name in start.parameters}
    for position in positions:
        at = np.array([position])
        update = local_update(
            sim.model,
            start.parameters,
            sim.train.support(at),
            [sim.train.query(at)],
            inner_lr=0.05,
            meta_lr=0.05,
            method="exact",
        )
        for name, value in update.parameters.items():
            own, old = value[0].numpy(), start.parameters[name].numpy()
            change = own - old
            if bits == 16:
                own = old + change.astype(np.float16)
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
        "scheme": "nufm-greedy",
        "bits_per_parameter": bits,
        "losses": {"dropout_probability": 0.5},
    }
    sim, start, after, record = one_round(experiment(cell))
    received = np.flatnonzero(record.device_columns["is_received"]).tolist()
    assert 0 < len(received) < 6 == record.columns["num_selected"]
    expected = mean_of(sim, start, received, bits)
    for name, value in after.parameters.items():
        assert_allclose(value.numpy(), expected[name], rtol=0, atol=3e-7)
    selected = np.flatnonzero(record.device_columns["is_selected"]).tolist()
    everyone = mean_of(sim, start, selected, bits)
    assert any(np.abs(after.parameters[n].numpy() - everyone[n]).max() > 1e-4 for n in everyone)


def test_fewer_bits_move_the_model_by_half_a_level_at_most() -> None:
    cell = {**PAPER_CELL, "scheme": "nufm-greedy"}
    _, start, exact, _ = one_round(experiment(cell))
    moved = []
    for bits in (16, 8):
        _, _, rounded, _ = one_round(experiment({**cell, "bits_per_parameter": bits}))
        moved.append(
            max(float((rounded.parameters[n] - exact.parameters[n]).abs().max()) for n in exact.parameters)
        )
    largest = max(float((exact.parameters[n] - start.parameters[n]).abs().max()) for n in exact.parameters)
    assert 0 < moved[0] < moved[1] < 3 * largest / 127  # the mean's change is below the largest device's


@pytest.mark.parametrize(
    ("cell", "note"),
    [
        ({"scheme": "nufm-greedy", "losses": {"deadline_s": 1e-6}}, "no upload arrived, the model stays"),
        ({"scheme": "ru-random", "losses": {"outage_snr_db": 100.0}}, "no upload arrived, the model stays"),
        ({"scheme": "ural", "losses": {"dropout_probability": 1.0}}, "no upload arrived, the model stays"),
        ({"scheme": "ural", "energy_weight": 1e9}, "nobody uploads, the model stays as it is: no upload is"),
        ({"scheme": "ural-ives", "delay_weight": 1e9}, "nobody uploads, the model stays as it is: "),
    ],
)
def test_a_run_in_which_nobody_arrives_keeps_the_model_to_the_bit_and_says_so(
    tmp_path: Path, cell: dict[str, Any], note: str
) -> None:
    settings = experiment({**PAPER_CELL, **cell})
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


def test_nufm_over_a_perfect_cell_is_nufm_without_a_cell(tmp_path: Path) -> None:
    pairs = {
        "nufm-greedy": {"name": "nufm", "num_selected": 3},
        "ru-random": {"name": "per-fedavg", "num_selected": 3},
    }
    base = experiment().algorithm.model_dump(exclude={"name", "selection", "gradient", "num_selected"})
    for scheme, algorithm in pairs.items():
        with_cell = run_experiment(experiment({**PAPER_CELL, "scheme": scheme}), tmp_path / scheme).path
        settings = experiment(algorithm={**base, **algorithm})
        without = run_experiment(settings, tmp_path / f"{scheme}-plain").path
        assert (with_cell / "model.safetensors").read_bytes() == (without / "model.safetensors").read_bytes()
        learnt = ("selected_devices", "train_loss", "heldout_loss", "heldout_accuracy", "num_computed")
        for one, other in zip(rows(with_cell, "rounds.csv"), rows(without, "rounds.csv"), strict=True):
            assert {name: one[name] for name in learnt} == {name: other[name] for name in learnt}


def test_without_a_cell_there_is_no_account(tmp_path: Path) -> None:
    base = experiment().algorithm.model_dump(exclude_none=True)
    folder = run_experiment(experiment(algorithm={**base, "num_selected": 3}), tmp_path / "run").path
    names = {*rows(folder, "rounds.csv")[0], *rows(folder, "devices.csv")[0]}
    assert not [n for n in names if n.endswith(("energy_j", "delay_s", "power_w")) or n in ("note", "block")]
    assert "cell" not in json.loads((folder / "summary.json").read_text())
    assert "cell" not in tomllib.loads((folder / "config.toml").read_text())
    assert not [n for n in load_file(folder / "checkpoint.safetensors") if n.startswith("ledger")]


def test_the_settings_of_the_section_reach_the_scheduler() -> None:
    base = experiment().algorithm.model_dump(exclude_none=True)
    given = {
        "energy_weight": 0.3,
        "delay_weight": 0.4,
        "max_delay_s": 5.0,
        "max_energy_j": 6.0,
        "report_bits": 7.0,
        "idle_power_w": 8.0,
        "everyone_computes": True,
    }
    cell = {**PAPER_CELL, **given, "scheme": "ru-greedy"}
    scheduler = build_simulation(experiment(cell, algorithm={**base, "num_local_steps": 3})).scheduler
    assert isinstance(scheduler, CellScheduler)
    assert {name: getattr(scheduler, name) for name in given} == given
    assert (scheduler.method, scheduler.selection, scheduler.seed) == ("greedy", "uniform", 5)
    assert scheduler.num_local_steps == 3


# The size of an upload --------------------------------------------------------------------------------------


def model_bits(cell: dict[str, Any]) -> float:
    scheduler = build_simulation(experiment(cell)).scheduler
    assert isinstance(scheduler, CellScheduler)
    return scheduler.model_bits


def test_s_comes_from_the_model_and_its_bits() -> None:
    street = {"preset": "umi-3.5ghz"}  # softmax on 6 inputs and 4 classes: 28 parameters in 2 tensors
    assert model_bits(street) == 28 * 32
    assert model_bits({**street, "bits_per_parameter": 16}) == 28 * 16
    assert model_bits({**street, "bits_per_parameter": 8}) == 28 * 8 + 2 * 32
    assert model_bits({**street, "model_bits": 1e6}) == 1e6


def test_s_is_one_float32_model_in_the_papers_normalised_cell() -> None:
    assert model_bits({"preset": "paper"}) == 1.0
    assert model_bits({"preset": "paper", "bits_per_parameter": 16}) == 0.5
    assert model_bits({"preset": "paper", "bits_per_parameter": 8}) == 0.25


def test_half_the_bits_take_half_the_time_and_energy_at_the_same_power() -> None:
    cell = {**PAPER_CELL, "scheme": "nufm-random"}
    whole, half = (one_round(experiment({**cell, "bits_per_parameter": bits}))[3] for bits in (32, 16))
    for name in ("upload_time_s", "upload_energy_j"):
        assert_allclose(half.device_columns[name], whole.device_columns[name] / 2, rtol=1e-12)


# Again, interrupted, elsewhere ------------------------------------------------------------------------------


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
    resumed = contents(resume_run(tmp_path / "cut").path)
    expected = contents(street_run)
    del resumed["config"], expected["config"]  # they differ in checkpoint_every
    assert resumed == expected


def test_the_number_of_workers_changes_nothing(street_run: Path, tmp_path: Path) -> None:
    settings = experiment(STREET_CELL, num_rounds=8, execution={"workers": 3, "chunk_samples": 0})
    other = contents(run_experiment(settings, tmp_path / "three").path)
    expected = contents(street_run)
    del other["config"], expected["config"]
    assert other == expected


def test_the_scheme_changes_neither_channel_nor_data_nor_model_nor_luck() -> None:
    cell = {**STREET_CELL, "losses": {"dropout_probability": 0.5}}
    sims = {scheme: build_simulation(experiment({**cell, "scheme": scheme})) for scheme in SCHEMES}
    first = sims["ural"]
    assert isinstance(first.scheduler, CellScheduler)
    start = first.initial_state().parameters
    for sim in sims.values():
        assert isinstance(sim.scheduler, CellScheduler)
        assert np.array_equal(sim.train.device_ids, first.train.device_ids)
        assert all(
            np.array_equal(one.query, other.query)
            for one, other in zip(sim.train.devices, first.train.devices, strict=True)
        )
        assert all(torch.equal(value, start[name]) for name, value in sim.initial_state().parameters.items())
        for k in (0, 3):
            one, other = sim.scheduler.cell.draw(k), first.scheduler.cell.draw(k)
            assert np.array_equal(one.channel_gain, other.channel_gain)
            assert np.array_equal(one.interference_w, other.interference_w)
        assert np.array_equal(
            sim.scheduler.cell.fleet.max_frequency_hz, first.scheduler.cell.fleet.max_frequency_hz
        )


def test_a_device_drops_out_under_one_scheme_if_it_does_under_another(tmp_path: Path) -> None:
    cell = {**PAPER_CELL, "num_blocks": 5, "losses": {"dropout_probability": 0.5}}
    fate: dict[tuple[int, int], set[float]] = {}
    for scheme in SCHEMES:
        folder = run_experiment(experiment({**cell, "scheme": scheme}), tmp_path / scheme).path
        for k in range(3):
            received = device_column(folder, k, "is_received")
            for position in np.flatnonzero(device_column(folder, k, "is_selected")).tolist():
                fate.setdefault((k, position), set()).add(received[position])
    assert len(fate) > 15
    assert all(len(seen) == 1 for seen in fate.values())
    assert {value for seen in fate.values() for value in seen} == {0.0, 1.0}


def test_a_redrawn_channel_differs_between_rounds_and_a_static_one_does_not() -> None:
    for preset, is_redrawn in (("paper", False), ("paper-redrawn", True)):
        scheduler = build_simulation(experiment({"preset": preset})).scheduler
        assert isinstance(scheduler, CellScheduler)
        same = np.array_equal(
            scheduler.cell.draw(0).channel_gain, scheduler.cell.draw(1).channel_gain
        ) and np.array_equal(scheduler.cell.draw(0).interference_w, scheduler.cell.draw(1).interference_w)
        assert same is not is_redrawn


# Records, presets, real data --------------------------------------------------------------------------------


@pytest.mark.parametrize(("scale", "constant"), [("raw", 0.0), ("constant", 12.5), ("normalised", 0.0)])
def test_the_scale_is_recorded_and_decides_what_the_allocation_sees(
    tmp_path: Path, scale: str, constant: float
) -> None:
    cell = {**PAPER_CELL, "contribution_scale": scale, "contribution_constant": constant}
    folder = run_experiment(experiment(cell, num_rounds=1), tmp_path / "run").path
    recorded = tomllib.loads((folder / "config.toml").read_text())["cell"]
    summary = json.loads((folder / "summary.json").read_text())["cell"]
    for record in (recorded, summary):
        assert (record["contribution_scale"], record["contribution_constant"]) == (scale, constant)
    raw = device_column(folder, 0, "contribution")
    expected = {"raw": raw, "constant": raw + 12.5, "normalised": raw / np.abs(raw).mean()}[scale]
    assert_allclose(device_column(folder, 0, "scaled_contribution"), expected, rtol=1e-14)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_papers_schemes_run_on_the_digits(tmp_path: Path, scheme: str) -> None:
    settings = load_experiment(f"digits/{scheme}", ["num_rounds=2", "evaluation.every=2"])
    assert settings.cell is not None
    assert (settings.cell.method, settings.cell.selection) == SCHEMES[scheme]
    result = run_experiment(settings, tmp_path / "run")
    table = rows(result.path, "rounds.csv")
    assert [row["num_computed"] for row in table] == (["10"] if scheme.startswith("ru") else ["30"]) * 2
    if not scheme.startswith("ural"):
        assert [row["num_selected"] for row in table] == ["10", "10"]  # n_k = M
    assert result.summary["cell"]["energy_j"] > 0
    assert len(rows(result.path, "devices.csv")) == 2 * 30


@pytest.mark.parametrize("preset", ["umi-3.5ghz", "uma-2ghz", "rma-700mhz", "chen2020", "fedl2021"])
def test_the_digits_run_in_every_cell_with_believable_numbers(tmp_path: Path, preset: str) -> None:
    settings = load_experiment(
        "digits/ural",
        ["num_rounds=2", "evaluation.every=2", f"cell.preset={preset}", "cell.contribution_scale=normalised"],
    )
    result = run_experiment(settings, tmp_path / "run")
    num_parameters = result.summary["num_parameters"]
    assert result.summary["cell"]["model_bits"] == 32 * num_parameters
    for row in rows(result.path, "rounds.csv"):
        assert 1e-3 < float(row["delay_s"]) < 3600
        assert 1e-4 < float(row["energy_j"]) < 1e3
    with (result.path / "rounds.csv").open() as file:
        assert "np.float64" not in file.read()


def test_the_paper_runs_on_real_fashion_mnist(tmp_path: Path) -> None:
    if "FEDWAVE_DATA" not in os.environ:
        pytest.skip("FEDWAVE_DATA is not set: no real datasets to read")
    find = DATASETS["fashion-mnist"].find
    assert find is not None
    if find(None) is None:
        pytest.skip("FEDWAVE_DATA holds no fashion-mnist")
    for scheme in ("ural", "ru-random"):
        result = run_experiment(load_experiment(f"paper/{scheme}", ["num_rounds=1"]), tmp_path / scheme)
        with (result.path / "rounds.csv").open() as file:
            (row,) = csv.DictReader(file)
        assert int(row["num_computed"]) == (50 if scheme == "ural" else 20)
        assert int(row["num_received"]) == int(row["num_selected"]) > 0
        assert float(row["energy_j"]) > 0
