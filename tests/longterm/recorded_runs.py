"""A short run over a street cell in which everybody computes: a trace that can be bounded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fedwave.runs.run import run_experiment
from tests.runs.small_runs import tiny

CELL: dict[str, Any] = {"preset": "umi-3.5ghz", "num_blocks": 3, "energy_weight": 0.02, "delay_weight": 0.03}
BUDGET_J = 0.0015  # the thirstiest device takes more


def recorded(path: Path, *, planner: Any = "auto") -> Path:
    """Run and return the folder."""
    settings = tiny(
        cell=CELL,
        num_rounds=8,
        selection={"num_selected": "auto", "similarity_penalty": 0.0, "variance_penalty": 0.0},
        algorithm={"planner": planner},
    )
    return run_experiment(settings, path).path
