"""Interference on each block: the power that other cells' devices add to the noise."""

from __future__ import annotations

import numpy as np

from fedwave.errors import ProblemError
from fedwave.units import FloatArray, db_to_linear
from fedwave.wireless.config import (
    DrawnInterference,
    EvenInterference,
    Interference,
    ListedInterference,
    NoiseRise,
)
from fedwave.wireless.distribution import bounds, draw


def draw_interference_w(
    config: Interference, *, num_blocks: int, noise_w: float, rng: np.random.Generator
) -> FloatArray:
    """Return I_m for each block, shape (M,). ``noise_w`` is the thermal noise B N0 in one block."""
    if isinstance(config, DrawnInterference):
        return draw(config.power_w, num_blocks, rng=rng)
    if isinstance(config, EvenInterference):
        return np.linspace(config.low_w, config.high_w, num_blocks)
    if isinstance(config, NoiseRise):
        return noise_w * (db_to_linear(draw(config.rise_db, num_blocks, rng=rng)) - 1.0)
    if isinstance(config, ListedInterference):
        return np.asarray(config.power_w, dtype=np.float64)
    return np.zeros(num_blocks)


def check_interference(config: Interference, *, num_blocks: int) -> None:
    """Raise if the interference could be negative or does not fit the number of blocks."""
    if isinstance(config, ListedInterference) and len(config.power_w) != num_blocks:
        raise ProblemError(
            f"interference.power_w lists {len(config.power_w)} blocks, but num_blocks is {num_blocks}. "
            "Give one power per block."
        )
    if isinstance(config, DrawnInterference) and bounds(config.power_w)[0] < 0.0:
        raise ProblemError(
            f"interference.power_w must be >= 0, got {bounds(config.power_w)[0]:g}. "
            "It is a power in watts; convert dBm with 1e-3 * 10^(x/10)."
        )
    if isinstance(config, NoiseRise):
        low_db, high_db = bounds(config.rise_db)
        if low_db < 0.0 or high_db > 1000.0:
            raise ProblemError(
                f"interference.rise_db must lie in 0 to 1000, got {low_db:g} to {high_db:g}. "
                "Interference can only raise the noise; use 0 for none."
            )
