"""Traces of small stationary cells, made without any training."""

from __future__ import annotations

import numpy as np

from fedwave import load_cell
from fedwave.longterm.trace import Trace, trace_of_cell


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
    contribution = np.random.default_rng(seed).exponential(mean, (num_rounds, num_devices))
    return trace_of_cell(
        cell,
        contribution,
        energy_weight=0.0,
        delay_weight=1.0,
        model_bits=1.0,
        num_samples=num_samples,
        seed=seed,
    )
