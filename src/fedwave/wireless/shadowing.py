"""Shadowing: buildings and trees, log-normal, drawn once per device."""

from __future__ import annotations

import numpy as np

from fedwave.units import FloatArray


def draw_shadowing_db(std_db: FloatArray, *, rng: np.random.Generator) -> FloatArray:
    """Return each device's shadowing loss in dB: normal, mean 0, independent of the other devices'."""
    return rng.standard_normal(len(std_db)) * std_db
