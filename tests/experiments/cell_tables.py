"""Runs over a cell for the tests, and their tables read with the csv module alone."""

from __future__ import annotations

import csv
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from fedwave.experiments import Experiment, experiment_from
from fedwave.experiments.build import build_simulation
from fedwave.experiments.schemes import expand_scheme
from fedwave.server import CellPlanner
from fedwave.settings import merge
from fedwave.simulation.cell_world import CellWorld
from fedwave.simulation.records import RoundRecord
from fedwave.simulation.simulation import Simulation
from fedwave.simulation.state import State
from fedwave.wireless.cell import Cell

SMALL: dict[str, Any] = {
    "name": "small",
    "seed": 5,
    "num_rounds": 3,
    "data": {"dataset": {"kind": "synthetic", "num_samples": 400, "num_classes": 4, "shape": [6]}},
    "partition": {"num_devices": 16},  # 8 train
    "model": {"kind": "softmax"},
    "algorithm": {"inner_lr": 0.05, "meta_lr": 0.05},
    "selection": {"similarity_penalty": 0.1, "variance_penalty": 0.1},
}
# The paper's schemes over a cell: the gradient is exact in all of them.
CELL_SCHEMES = {
    "ural": ("optimal", "top-contribution"),
    "ural-ives": ("ives", "top-contribution"),
    "nufm-greedy": ("greedy", "top-contribution"),
    "nufm-random": ("random", "top-contribution"),
    "ru-greedy": ("greedy", "uniform"),
    "ru-random": ("random", "uniform"),
}
PAPER_CELL: dict[str, Any] = {"preset": "paper", "num_blocks": 3, "energy_weight": 0.02, "delay_weight": 0.03}
STREET_CELL: dict[str, Any] = {
    "preset": "umi-3.5ghz",
    "num_blocks": 3,
    "energy_weight": 0.02,
    "delay_weight": 0.03,
    "contribution_scale": "normalised",
    "report_bits": 32.0,
    "idle_power_w": 0.01,
    "losses": {"dropout_probability": 0.3, "packet_error_waterfall": 0.5, "outage_snr_db": -3.0},
}


def experiment(cell: dict[str, Any] | None = None, **changes: Any) -> Experiment:
    """Return the small experiment over the given cell, with a layer of changes on top."""
    settings = merge(
        SMALL, expand_scheme({**changes, **({} if cell is None else {"cell": cell})}), Experiment
    )
    return experiment_from(settings)


def rows(folder: Path, name: str) -> list[dict[str, str]]:
    """Return a table's rows as they stand in the file."""
    with (folder / name).open() as file:
        return list(csv.DictReader(file))


def device_column(folder: Path, round_index: int, name: str) -> np.ndarray:
    """Return one column of devices.csv in one round; NaN where it is empty."""
    own = [row[name] for row in rows(folder, "devices.csv") if int(row["round"]) == round_index]
    return np.array([float(text) if text else np.nan for text in own])


def cell_of(sim: Simulation) -> Cell:
    """Return the cell that a simulation trains over."""
    assert isinstance(sim.federation.world, CellWorld)
    return sim.federation.world.cell


def planner_of(sim: Simulation) -> CellPlanner:
    """Return the planner of a simulation over a cell."""
    assert isinstance(sim.federation.planner, CellPlanner)
    return sim.federation.planner


def one_round(settings: Experiment) -> tuple[Simulation, State, State, RoundRecord]:
    """Return the simulation, its state before and after the first round, and the record of that round."""
    sim = build_simulation(settings)
    start = sim.initial_state()
    with closing(sim.open_devices()) as devices:
        after, record = sim.run_round(start, devices)
    return sim, start, after, record
