"""Whole runs with the planners that look further than a round: stopped and resumed to the same bits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fedwave.runs.run import resume_run, run_experiment
from fedwave.server import PLANNERS
from tests.runs.small_runs import StopAfter, contents, tiny

CELL = {"preset": "umi-3.5ghz", "num_blocks": 2, "energy_weight": 0.02, "delay_weight": 0.03}
BATTERY = {"capacity_j": 4.0, "interval_s": 60.0, "harvest": {"kind": "constant", "power_w": 0.001}}
PARTS: list[dict[str, Any]] = [
    {"kind": "drift-plus-penalty", "budget_j": 0.3, "v": 0.5},
    {"kind": "drift-plus-penalty", "budget_j": 0.3, "frame": 3, "growth": 1.0, "asks": "all"},
    {"kind": "drift-plus-penalty", "by": "battery"},
    {"kind": "constant-prices", "price": 2.0},
    {"kind": "capped-rounds", "budget_j": 0.5, "saves": True},
    {"kind": "until-spent", "total_j": 1.5},
    {"kind": "eafl", "total_j": 3.0, "pace_rounds": 1},
    {"kind": "eafl", "by": "battery", "utility": "contribution"},
]


@pytest.mark.parametrize("part", PARTS, ids=lambda part: "-".join(map(str, part.values())))
def test_a_stopped_run_goes_on_to_the_same_bits(part: dict[str, Any], tmp_path: Path) -> None:
    cell = {**CELL, "battery": BATTERY} if part.get("by") == "battery" else CELL
    settings = tiny(cell=cell, algorithm={"planner": part}, selection={"num_selected": "auto"})
    whole = run_experiment(settings, tmp_path / "whole").path
    with pytest.raises(KeyboardInterrupt):
        run_experiment(settings, tmp_path / "cut", observers=[StopAfter(2)])
    resume_run(tmp_path / "cut")
    assert contents(tmp_path / "cut") == contents(whole)


def test_every_planner_over_a_cell_is_among_them() -> None:
    assert {part["kind"] for part in PARTS} | {"auto", "sample-weights"} == set(PLANNERS)
