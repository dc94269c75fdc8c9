"""Small-scale block fading: a factor of mean 1 on the power gain, fresh for each (device, block)."""

from __future__ import annotations

import numpy as np

from fedwave.units import FloatArray

_CHUNK = 1 << 14


def rayleigh_power(shape: tuple[int, ...], *, rng: np.random.Generator) -> FloatArray:
    """Return |g|^2 for g complex normal of unit power: exponential with mean 1 and variance 1."""
    return rng.standard_exponential(shape)


def rician_power(shape: tuple[int, ...], *, k_factor: float, rng: np.random.Generator) -> FloatArray:
    """Return |g|^2 for a steady path K times as strong as the scattered rest; mean 1.

    The variance is (1 + 2K) / (1 + K)^2: 1 at K = 0 (Rayleigh), towards 0 for a steady channel.
    """
    scatter = np.sqrt(0.5 / (1.0 + k_factor))  # standard deviation of each of the two components
    power = np.empty(shape)
    flat = power.reshape(-1)
    quadrature = np.empty(min(flat.size, _CHUNK))
    for start in range(0, flat.size, _CHUNK):  # chunks stay in the processor's cache: half the time
        part = flat[start : start + _CHUNK]
        rng.standard_normal(out=part)
        part *= scatter
        part += np.sqrt(k_factor / (1.0 + k_factor))
        np.square(part, out=part)
        other = quadrature[: part.size]
        rng.standard_normal(out=other)
        other *= scatter
        np.square(other, out=other)
        part += other
    return power
