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


def write_battery_run(
    folder: Path,
    name: str,
    charge_j: list[list[float]],
    *,
    seed: int = 0,
    price: list[list[float]] | None = None,
    values: list[float] | None = None,
) -> FinishedRun:
    """Return a run on batteries with these charges, a row for each half hour; a device needs over 1 J."""
    values = [0.1 * (k + 1) for k in range(len(charge_j))] if values is None else values
    write_run(folder, name, values, over_cell=True, seed=seed)
    head, *rows = (folder / "rounds.csv").read_text().splitlines()
    awake = [sum(one > 1.0 for one in row) for row in charge_j]
    rows = [f"{row},{k},{awake[k]},{1800 * (k + 1)}" for k, row in enumerate(rows)]
    (folder / "rounds.csv").write_text("\n".join([f"{head},num_flat,num_awake,clock_s", *rows]) + "\n")
    header = "round,device,battery_j" + ("" if price is None else ",planner_price_per_j")
    lines = [
        f"{k},{10 + i},{charge}" + ("" if price is None else f",{_number(price[k][i])}")
        for k, row in enumerate(charge_j)
        for i, charge in enumerate(row)
    ]
    (folder / "devices.csv").write_text("\n".join([header, *lines]) + "\n")
    return read_run(folder)


def _number(value: float) -> str:
    return "" if math.isnan(value) else str(value)
