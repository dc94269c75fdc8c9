"""What nodes say of their radio: none may end a federation, or have the others dropped."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from flwr.serverapp.strategy import Result

from fedwave.flower import client_app, device_of_experiment, initial_arrays, simulation_of
from fedwave.flower import strategy_of_experiment as strategy_of
from tests.flower.bad_replies import metrics
from tests.flower.fake_grid import FIRST_NODE, FakeGrid
from tests.flower.toy import app
from tests.flower.toy_server import first_arrays, strategy

SMALL = "data.dataset=digits partition.num_devices=16 cell.num_blocks=3 execution.chunk_samples=1"
WEIGHTS = "cell.energy_weight=0.01 cell.delay_weight=0.01"
LIMITS = {"max_power_w": 1.0, "max_frequency_hz": 1e9, "capacitance": 1e-28, "cycles_per_sample": 1e6}


def train(source: str, tampered: dict[int, dict[str, Any]], num_rounds: int = 2) -> Result:
    """Return the result of a federation over a cell in which some nodes report other numbers."""
    config = {"experiment": source, "overrides": f"{SMALL} {WEIGHTS}"}
    simulation = simulation_of(config)
    grid = FakeGrid(client_app(device_of_experiment), len(simulation.train), config)
    for position, changes in tampered.items():
        grid.tamper[FIRST_NODE + position, "train.report"] = metrics(**changes)
    return strategy_of(simulation).start(grid, initial_arrays(simulation), num_rounds=num_rounds)


def rounds_of(result: Result) -> list[dict[str, Any]]:
    return [dict(record) for record in result.train_metrics_clientapp.values()]


@pytest.mark.parametrize("max_frequency_hz", [1e8, 1.0])
def test_one_slow_node_does_not_end_a_federation_over_a_street_cell(max_frequency_hz: float) -> None:
    # The cell's CPUs run at 0.3 GHz at least; this one reaches less.
    rounds = rounds_of(train("umi/ural", {4: {"max_frequency_hz": max_frequency_hz}}))
    assert [len(record["reported"]) for record in rounds] == [len(rounds[0]["reported"])] * 2
    assert all(4 in record["reported"] for record in rounds)
    assert not any(record["dropped_nodes"] for record in rounds)


@pytest.mark.parametrize("source", ["umi/ural", "umi/nufm-greedy", "digits/ural"])
@pytest.mark.parametrize(
    "changes",
    [
        {"channel_gain": [0.0, 0.0, 0.0]},
        {"max_power_w": 1e-300},
        {"max_frequency_hz": 1e-300},
        {"capacitance": 0.0, "cycles_per_sample": 0.0},
        {"cycles_per_sample": 1e18, "max_frequency_hz": 1e-18},
        {"channel_gain": [1e-300, 1e-300, 1e-300]},
        {"channel_gain": [5e-324], "max_power_w": 5e-324},
        {"channel_gain": [1e18], "max_power_w": 1e18, "capacitance": 1e18},
        {"channel_gain": [1.0, float("nan"), 1.0]},
    ],
)
def test_no_number_of_a_single_node_ends_the_federation(source: str, changes: dict[str, Any]) -> None:
    rounds = rounds_of(train(source, {4: changes}))
    assert len(rounds) == 2
    for record in rounds:
        assert not record["skipped"]
        assert set(record["dropped_nodes"]) <= {FIRST_NODE + 4}
        assert {0, 1, 2, 3, 5, 6, 7} <= set(record["reported"])


@pytest.mark.parametrize("gains", [[1.0, 1.0], [1.0] * 4])
def test_gains_of_other_blocks_than_the_cells_are_dropped(gains: list[float], said: list[str]) -> None:
    num_devices = 8  # all but two are wrong, and the two are believed
    wrong = {position: {"channel_gain": gains} for position in range(num_devices - 2)}
    rounds = rounds_of(train("digits/ural", wrong, num_rounds=1))
    assert rounds[0]["reported"] == [num_devices - 2, num_devices - 1]
    assert rounds[0]["dropped_nodes"] == [FIRST_NODE + position for position in range(num_devices - 2)]
    assert any(f"it reports gains of {len(gains)} blocks, the cell has 3" in line for line in said)


def test_a_node_that_tells_of_a_radio_where_nobody_has_one_changes_nothing() -> None:
    plain = strategy(4, 2).start(FakeGrid(app, 4), first_arrays(), num_rounds=2)
    grid = FakeGrid(app, 4)
    grid.tamper[FIRST_NODE, "train.report"] = metrics(channel_gain=[1.0, 2.0], **LIMITS)
    result = strategy(4, 2).start(grid, first_arrays(), num_rounds=2)
    assert [record["reported"] for record in rounds_of(result)] == [[0, 1, 2, 3]] * 2
    np.testing.assert_array_equal(result.arrays["w"].numpy(), plain.arrays["w"].numpy())
