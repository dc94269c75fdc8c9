"""When a run ends early: each budget by itself, and none where nothing was measured."""

from __future__ import annotations

import math
from typing import Any

import pytest

from fedwave.simulation.stop import NEVER, StopRule


@pytest.mark.parametrize(
    ("rule", "row", "expected"),
    [
        ({"energy_j": 5.0}, {"cumulative_energy_j": 5.0}, "stop.energy_j = 5 is reached, with 5"),
        ({"energy_j": 5.0}, {"cumulative_energy_j": 4.99}, None),
        ({"time_s": 9.0}, {"cumulative_delay_s": 9.5}, "stop.time_s = 9 is reached, with 9.5"),
        (
            {"time_s": 9.0},
            {"cumulative_delay_s": 1.0, "clock_s": 60.0},
            "stop.time_s = 9 is reached, with 60",
        ),
        ({"time_s": 9.0}, {"cumulative_delay_s": 10.0, "clock_s": 8.0}, None),  # pauses count, and they do
        ({"accuracy": 0.5}, {"heldout_accuracy": 0.51}, "stop.accuracy = 0.5 is reached, with 0.51"),
        ({"accuracy": 0.5}, {"heldout_accuracy": math.nan}, None),
        ({"accuracy": 0.5}, {"heldout_accuracy": None}, None),
        ({"dead_share": 0.5}, {"num_awake": 2}, "stop.dead_share = 0.5 is reached, with 0.5"),
        ({"dead_share": 0.5}, {"num_awake": 3}, None),
        ({"dead_share": 0.5}, {}, None),
        (
            {"energy_j": 5.0},
            {"cumulative_energy_j": 4.0, "next_local_steps": 0},
            "algorithm.local_steps ends the run: no further round fits into its budget",
        ),
        ({"energy_j": 5.0}, {"cumulative_energy_j": 4.0, "next_local_steps": 1}, None),
    ],
)
def test_a_run_ends_at_its_budget(rule: dict[str, float], row: dict[str, Any], expected: str | None) -> None:
    assert StopRule(**rule, num_devices=4).reason(row) == expected


def test_without_budgets_a_run_never_ends_early() -> None:
    everything = {"cumulative_energy_j": 1e9, "clock_s": 1e9, "heldout_accuracy": 1.0, "num_awake": 0}
    assert NEVER.reason(everything) is None
