"""Flower's round and ``fedwave run``'s: the same devices in every round, the same model."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pytest

from fedwave.errors import ConfigError
from fedwave.flower import (
    Grant,
    client_app,
    device_of_experiment,
    initial_arrays,
    simulation_of,
    strategy_of_experiment,
)
from fedwave.learning.rules import LOCAL_RULES, PlainDescent
from fedwave.simulation.cell_world import CellWorld
from fedwave.simulation.simulation import Simulation
from tests.flower.bad_replies import metrics
from tests.flower.fake_grid import FIRST_NODE, FakeGrid

SMALL = "partition.num_devices=16"
STREET = f"data.dataset=digits {SMALL} cell.energy_weight=0.01 cell.delay_weight=0.01"
RUNS = {
    "NUFM": ("digits/nufm", f"{SMALL} selection.num_selected=3"),
    "Per-FedAvg": ("digits/per-fedavg", f"{SMALL} selection.num_selected=3"),
    "FedAvg, three steps on batches": (
        "digits/fedavg",
        f"{SMALL} selection.num_selected=3 algorithm.num_local_steps=3 algorithm.query_batch_size=4",
    ),
    "momentum": ("digits/nufm", f"{SMALL} selection.num_selected=3 algorithm.server_step=momentum"),
    **{
        kind: ("digits/nufm", f"{SMALL} selection.num_selected=5 algorithm.server_step={kind}")
        for kind in ("clip-norm", "trimmed-mean", "median")
    },
    "URAL": ("digits/ural", f"{SMALL} cell.num_blocks=3"),
    "NUFM that asks four by what it remembers": (
        "digits/nufm",
        f"{SMALL} selection.num_selected=2 selection.policy.num_candidates=4 selection.policy.remembers=true",
    ),
    "URAL that asks four by what it remembers": (
        "digits/ural",
        f"{SMALL} cell.num_blocks=3 selection.policy.num_candidates=4 selection.policy.remembers=true",
    ),
    "URAL with losses": ("digits/ural", f"{SMALL} cell.num_blocks=3 cell.losses.dropout_probability=0.4"),
    "a street cell": (
        "umi/ural",
        f"{STREET} cell.num_blocks=3",
    ),
    "whole blocks of a street cell": ("umi/ural", f"{STREET} cell.num_blocks=8 cell.access=blocks"),
    "blocks that go on to others": (
        "umi/ural",
        f"{STREET} cell.num_blocks=8 cell.access=blocks cell.work_conserving=true",
    ),
    "one block each that goes on to others": (
        "umi/ural",
        f"{STREET} cell.num_blocks=8 cell.access=one-block cell.work_conserving=true",
    ),
    "shares of a band": ("umi/ural", f"{STREET} cell.num_blocks=3 cell.access=shared-band"),
    "turns": ("umi/ural", f"{STREET} cell.num_blocks=3 cell.access=tdma cell.max_uploads=4"),
}
ROUNDS = 3


def plain_run(simulation: Simulation) -> tuple[dict[str, np.ndarray], list[list[int]], list[list[int]]]:
    """What fedwave run computes: the model, and who was selected and received in each round."""
    position = {int(d): p for p, d in enumerate(simulation.train.device_ids)}
    state, selected, received = simulation.initial_state(), [], []
    with closing(simulation.open_devices()) as devices:
        for _ in range(ROUNDS):
            state, record = simulation.run_round(state, devices)
            selected.append([position[d] for d in record.columns["selected_devices"]])
            flags = record.device_columns.get("is_received", record.device_columns["is_selected"])
            received.append(np.flatnonzero(flags).tolist())
    return {name: value.numpy() for name, value in state.parameters.items()}, selected, received


def compare(source: str, overrides: str, tolerance: float) -> None:
    config = {"experiment": source, "overrides": overrides}
    simulation = simulation_of(config)
    grid = FakeGrid(client_app(device_of_experiment), len(simulation.train), config)
    result = strategy_of_experiment(simulation).start(grid, initial_arrays(simulation), num_rounds=ROUNDS)
    model, selected, received = plain_run(simulation)
    rounds = list(result.train_metrics_clientapp.values())
    assert [record["selected"] for record in rounds] == selected
    assert [record["received"] for record in rounds] == received
    assert sum(map(len, received)) > 0
    assert all(record["dropped_nodes"] == [] for record in rounds)
    for array, value in model.items():
        got = result.arrays[array].numpy()
        assert np.linalg.norm(got - value) <= tolerance * np.linalg.norm(value), array


@pytest.mark.parametrize("name", RUNS)
def test_with_a_device_at_a_time_flower_and_fedwave_run_are_equal_to_the_bit(name: str) -> None:
    source, overrides = RUNS[name]
    compare(source, f"{overrides} execution.chunk_samples=1", tolerance=0.0)


@pytest.mark.parametrize("name", ["NUFM", "Per-FedAvg", "URAL"])
def test_with_several_at_once_they_differ_in_the_last_bits(name: str) -> None:
    """fedwave run stacks devices, which sums in another order.

    Where a maximum or a ReLU is all but tied, that can flip a gradient; it does not in these runs.
    """
    compare(*RUNS[name], tolerance=1e-5)


def test_the_chosen_are_told_their_block_power_and_frequency() -> None:
    config = {"experiment": "digits/ural", "overrides": f"{SMALL} cell.num_blocks=3"}
    simulation = simulation_of(config)
    grid = FakeGrid(client_app(device_of_experiment), len(simulation.train), config)
    result = strategy_of_experiment(simulation).start(grid, initial_arrays(simulation), num_rounds=1)
    with closing(simulation.open_devices()) as devices:
        _, record = simulation.run_round(simulation.initial_state(), devices)
    told = {
        node: dict(message.content.config_records["config"])
        for node, kind, message, _ in grid.log
        if kind == "train.upload"
    }
    chosen = result.train_metrics_clientapp[1]["selected"]
    assert len(told) == len(chosen) == 3
    for (_, grant), device in zip(sorted(told.items()), chosen, strict=True):
        assert grant["round"] == 0
        for name in ("block", "transmit_power_w", "cpu_frequency_hz"):
            assert grant[name] == pytest.approx(record.device_columns[name][device], rel=1e-5)
    reports = [reply for _, kind, _, reply in grid.log if kind == "train.report"]
    for reply in reports:
        metrics = reply.content.metric_records["metrics"]
        assert {"channel_gain", "max_power_w", "max_frequency_hz", "cycles_per_sample"} <= set(metrics)


ACCESSES = [name for name in RUNS if "cell.access" in RUNS[name][1]]


@pytest.mark.parametrize("name", ACCESSES)
def test_the_chosen_are_told_who_sends_when(name: str) -> None:
    """What the messages say adds up by itself: nobody shares a hertz at a time, and every model is sent."""
    source, overrides = RUNS[name]
    config = {"experiment": source, "overrides": f"{overrides} execution.chunk_samples=1"}
    simulation = simulation_of(config)
    grid = FakeGrid(client_app(device_of_experiment), len(simulation.train), config)
    result = strategy_of_experiment(simulation).start(grid, initial_arrays(simulation), num_rounds=1)
    with closing(simulation.open_devices()) as devices:
        _, record = simulation.run_round(simulation.initial_state(), devices)
    told = {
        node - FIRST_NODE: Grant.from_config(message.content.config_records["config"])
        for node, kind, message, _ in grid.log
        if kind == "train.upload"
    }
    assert sorted(told) == result.train_metrics_clientapp[1]["selected"]
    assert len(told) >= 3
    world = simulation.federation.world
    assert isinstance(world, CellWorld)
    draw, terms, column = world.channel(0), world.terms, record.device_columns
    for device, grant in told.items():
        assert grant.access == ("blocks" if terms.work_conserving else terms.access)
        bits, joules = 0.0, 0.0
        for one in grant.pieces:
            noise_w = one.width_hz * (draw.interference_w[0] / terms.bandwidth_hz + terms.noise_psd_w_per_hz)
            snr = one.transmit_power_w * draw.channel_gain[device] / noise_w
            time_s = one.end_s - one.start_s
            bits += time_s * one.width_hz * float(terms.rate.spectral_efficiency(np.array(snr)))
            joules += time_s * one.transmit_power_w
        assert bits == pytest.approx(world.work.model_bits, rel=1e-6)
        ends = max(one.end_s for one in grant.pieces)
        started = min(one.start_s for one in grant.pieces)
        assert ends - started == pytest.approx(float(column["upload_time_s"][device]), rel=1e-6)
        joules = joules / terms.radio.amplifier_efficiency + terms.radio.circuit_power_w * (ends - started)
        assert joules == pytest.approx(float(column["upload_energy_j"][device]), rel=1e-6)
    pieces = [piece for grant in told.values() for piece in grant.pieces]
    band_hz = terms.num_blocks * terms.bandwidth_hz
    for k, one in enumerate(pieces):
        assert 0.0 <= one.first_hz <= one.first_hz + one.width_hz <= band_hz * (1 + 1e-9)
        for other in pieces[:k]:
            wide = min(one.first_hz + one.width_hz, other.first_hz + other.width_hz)
            long = min(one.end_s, other.end_s) - max(one.start_s, other.start_s)
            assert min(wide - max(one.first_hz, other.first_hz), long * band_hz) <= 1e-6 * band_hz
    if terms.work_conserving:
        assert len(pieces) > len(told)


def test_a_node_that_tells_of_every_block_is_dropped_where_blocks_are_alike(said: list[str]) -> None:
    source, overrides = RUNS["whole blocks of a street cell"]
    config = {"experiment": source, "overrides": overrides}
    simulation = simulation_of(config)
    grid = FakeGrid(client_app(device_of_experiment), len(simulation.train), config)
    grid.tamper[FIRST_NODE, "train.report"] = metrics(channel_gain=[1e-9] * 8)
    result = strategy_of_experiment(simulation).start(grid, initial_arrays(simulation), num_rounds=1)
    assert result.train_metrics_clientapp[1]["dropped_nodes"] == [FIRST_NODE]
    assert len(result.train_metrics_clientapp[1]["received"]) >= 3
    assert any("it reports gains of 8 blocks, one for all is asked for" in line for line in said)


@dataclass(frozen=True)
class WithMomentum(PlainDescent):
    """A rule of one's own whose steps are not beta times the gradient: it does not say that they are."""

    is_plain_step: ClassVar[bool] = False


@pytest.mark.parametrize("rule", list(LOCAL_RULES))
def test_uploads_of_every_rule_of_ours_are_audited(rule: str) -> None:
    overrides = f"{SMALL} selection.num_selected=3 algorithm.rule={rule} algorithm.num_local_steps=2"
    config = {"experiment": "digits/nufm", "overrides": overrides}
    simulation = simulation_of(config)
    server = strategy_of_experiment(simulation)
    assert server.audit is not None
    grid = FakeGrid(client_app(device_of_experiment), len(simulation.train), config)
    result = server.start(grid, initial_arrays(simulation), num_rounds=2)
    for record in result.train_metrics_clientapp.values():
        assert len(record["received"]) == 3
        assert record["dropped_nodes"] == record["excluded"] == []


def test_uploads_of_a_rule_that_takes_other_steps_are_not_audited(said: list[str]) -> None:
    simulation = simulation_of({"experiment": "digits/nufm", "overrides": RUNS["NUFM"][1]})
    for rule in (WithMomentum(0.1), SimpleNamespace(pools_samples=True)):
        other = replace(simulation, local=replace(simulation.local, rule=rule))
        assert strategy_of_experiment(other).audit is None
    assert "uploads are not audited: WithMomentum does not say is_plain_step" in said


def test_steps_that_change_from_round_to_round_are_refused() -> None:
    overrides = f"{SMALL} cell.num_blocks=3 algorithm.local_steps=adaptive stop.energy_j=50"
    simulation = simulation_of({"experiment": "digits/ural", "overrides": overrides})
    with pytest.raises(ConfigError) as caught:
        strategy_of_experiment(simulation)
    assert str(caught.value) == (
        "algorithm.local_steps has no effect with Flower, whose messages carry one number of steps for all "
        "rounds, got it. Leave it out, and set algorithm.num_local_steps."
    )


def test_penalties_are_not_estimated_on_real_devices() -> None:
    overrides = f"{SMALL} selection.num_selected=3 selection.penalties=estimated"
    simulation = simulation_of({"experiment": "digits/nufm", "overrides": overrides})
    with pytest.raises(ConfigError, match="real devices are not asked for the Hessians"):
        strategy_of_experiment(simulation)
