"""Run folders written by hand: every number that is compared is one of ours."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from fedwave.experiments import experiment_from, experiment_to_toml
from fedwave.runs.compare import FinishedRun, read_run


def write_run(
    folder: Path,
    name: str,
    values: list[float],
    *,
    over_cell: bool = False,
    metric: str = "accuracy",
    seed: int = 0,
    carbon_intensity_g_per_kwh: float | None = None,
) -> FinishedRun:
    """Return a run with these values of its held-out metric, one a round; NaN where it was not evaluated.

    Round k ends after 10 (k + 1) seconds and 100 (k + 1) joules; five uploads arrive in each.
    """
    folder.mkdir(parents=True)
    settings: dict[str, Any] = {"name": name, "seed": seed}
    if over_cell:
        settings["cell"] = {"preset": "paper", "carbon_intensity_g_per_kwh": carbon_intensity_g_per_kwh}
    if metric != "accuracy":
        settings |= {"data": {"dataset": "sinusoids"}, "partition": {"kind": "given"}}
    (folder / "config.toml").write_text(experiment_to_toml(experiment_from(settings)))
    header = f"round,train_loss,heldout_loss,heldout_{metric},num_received,wall_time_s"
    measured = ["," if math.isnan(value) else f"2.0,{value}" for value in values]
    rows = [f"{k},{k + 1},{both},5,0.5" for k, both in enumerate(measured)]
    if over_cell:
        header += ",cumulative_delay_s,cumulative_energy_j"
        rows = [f"{row},{10 * (k + 1)},{100 * (k + 1)}" for k, row in enumerate(rows)]
    (folder / "rounds.csv").write_text("\n".join([header, *rows]) + "\n")
    return read_run(folder)
