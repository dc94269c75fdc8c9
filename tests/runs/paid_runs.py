"""Runs whose costs until an accuracy are known."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from fedwave.runs.compare import FinishedRun
from tests.experiments.cell_tables import PAPER_CELL, experiment

# seconds and joules of each round until the accuracy is 0.8
OURS = {0: (1.0, 4.0), 1: (2.0, 10.0), 2: (8.0, 5.0), 3: (1.0, 1.0)}
THEIRS = {0: (2.0, 4.0), 1: (16.0, 10.0), 2: (32.0, 5.0), 4: (1.0, 1.0)}


def paid_runs(name: str, costs: dict[int, tuple[float, float]]) -> list[FinishedRun]:
    return [
        FinishedRun(
            Path(f"{name}-{seed}"),
            experiment(PAPER_CELL, name=name, seed=seed),
            {
                "round": np.array([0, 1]),
                "heldout_accuracy": np.array([0.5, 0.8]),
                "cumulative_delay_s": np.array([delay_s / 2, delay_s]),
                "cumulative_energy_j": np.array([energy_j / 2, energy_j]),
            },
        )
        for seed, (delay_s, energy_j) in costs.items()
    ]
