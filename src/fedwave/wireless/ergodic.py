"""The rate of an upload that outlasts the fading: what a gain is worth on average. Needs numpy alone."""

from __future__ import annotations

import numpy as np

from fedwave.units import FloatArray


def mean_log(mean_snr: FloatArray, k_factor: FloatArray) -> FloatArray:
    """Return E ln(1 + x g) for fading g of mean 1 with a steady path K times as strong as the rest (Rician).

    With the scattered power s ~ Exp(1) / (1 + K), the mean over the angle between the two is closed,
    ln((A + sqrt(A^2 - B^2)) / 2) with A = 1 + x (K / (1 + K) + s), B = 2 x sqrt(s K / (1 + K)); the mean over
    s is summed with Gauss's rule. ``k_factor`` broadcasts against ``mean_snr``.
    """
    steady = k_factor / (1.0 + k_factor)
    total = np.zeros(np.broadcast_shapes(np.shape(mean_snr), np.shape(k_factor)))
    for scattered, weight in zip(_SCATTERED, _WEIGHT, strict=True):
        power = scattered / (1.0 + k_factor)
        apart, together = np.sqrt(steady) - np.sqrt(power), np.sqrt(steady) + np.sqrt(power)
        # A - B and A + B, without the difference of large numbers.
        low, high = 1.0 + mean_snr * apart**2, 1.0 + mean_snr * together**2
        total += weight * np.log((0.5 * (low + high) + np.sqrt(low * high)) / 2.0)
    return total


def ergodic_share(mean_snr: FloatArray, k_factor: FloatArray) -> FloatArray:
    """Return the share of the mean gain that a channel without fading would need for the same rate.

    It is 1 for a vanishing SNR and falls with the SNR, for Rayleigh fading to e^-0.577, i.e. -2.5 dB, because
    ln(1 + x2 g) is concave in ln(1 + x1 g) for x1 < x2. So the share at full power promises, at any lower
    power, a rate that the fading channel reaches and exceeds. Proof: docs/cell.md, "Fading".
    """
    log = mean_log(mean_snr, k_factor)
    share = np.ones_like(log)
    np.divide(np.expm1(log), mean_snr, out=share, where=np.broadcast_to(mean_snr > 1e-9, log.shape))
    return np.minimum(share, 1.0)


def _exponential_rule(num_points: int) -> tuple[FloatArray, FloatArray]:
    """Return points and weights for the mean over an exponential variable.

    Gauss-Legendre on its quantile q = u^3 (10 - 15 u + 6 u^2), which crowds where ln(1 + x s) is steep.
    """
    node, weight = np.polynomial.legendre.leggauss(num_points)
    u = 0.5 * (node + 1.0)
    below, above = _smooth_step(u), _smooth_step(1.0 - u)  # q and 1 - q, each exact where it is small
    point = np.where(u < 0.5, -np.log1p(-below), -np.log(above))
    return point, 0.5 * weight * 30.0 * u**2 * (1.0 - u) ** 2


def _smooth_step(u: FloatArray) -> FloatArray:
    return u**3 * (10.0 - 15.0 * u + 6.0 * u**2)


_SCATTERED, _WEIGHT = _exponential_rule(24)
