"""Traces of small stationary cells, made without any training."""

from __future__ import annotations

import numpy as np

from fedwave import load_cell
from fedwave.longterm.trace import Trace
from fedwave.selection import TopContribution
from fedwave.server import CellPlanner, PolicyRunner, RoundAims, Work
from fedwave.simulation.cell_world import CellWorld


def small_trace(
    num_devices: int,
    num_blocks: int,
    num_rounds: int,
    *,
    seed: int = 0,
    num_samples: int = 2,
    mean: float = 10.0,
) -> Trace:
    """Return a trace of the paper's cell, drawn anew each round, with u ~ Exp(mean)."""
    cell = load_cell(
        "paper-redrawn", num_devices=num_devices, seed=seed, overrides={"num_blocks": num_blocks}
    )
    samples = np.full(num_devices, num_samples)
    work = Work(model_bits=1.0, num_local_steps=1, num_samples=samples)
    planner = CellPlanner(
        runner=PolicyRunner(TopContribution(num_devices), samples, seed),
        fleet=cell.fleet,
        terms=cell.terms,
        aims=RoundAims(energy_weight=0.0, delay_weight=1.0),
        work=work,
    )
    world = CellWorld(cell=cell, terms=cell.terms, work=work, seed=seed)
    contribution = np.random.default_rng(seed).exponential(mean, (num_rounds, num_devices))
    return Trace(world=world, planner=planner, contribution=contribution)
