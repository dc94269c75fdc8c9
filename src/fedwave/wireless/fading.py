"""Small-scale block fading: a factor of mean 1 on the power gain, fresh for each (device, block)."""

from __future__ import annotations

import numpy as np

from fedwave.units import FloatArray


def rayleigh_power(shape: tuple[int, ...], *, rng: np.random.Generator) -> FloatArray:
    """Return |g|^2 for g complex normal of unit power: exponential with mean 1 and variance 1."""
    return rng.standard_exponential(shape)


def rician_power(
    shape: tuple[int, ...], *, k_factor: float | FloatArray, rng: np.random.Generator
) -> FloatArray:
    """Return |g|^2 for a steady path K times as strong as the scattered rest; mean 1.

    The variance is (1 + 2K) / (1 + K)^2: 1 at K = 0 (Rayleigh), towards 0 for a steady channel.
    """
    scatter = np.sqrt(0.5 / (1.0 + k_factor))  # standard deviation of each of the two components
    power = rng.standard_normal(shape)
    power *= scatter
    power += np.sqrt(k_factor / (1.0 + k_factor))
    np.square(power, out=power)
    quadrature = rng.standard_normal(shape)
    quadrature *= scatter
    np.square(quadrature, out=quadrature)
    power += quadrature
    return power
