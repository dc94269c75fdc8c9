"""How much a device's update is expected to lower the global loss, Eq. (21)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from fedwave.errors import ProblemError
from fedwave.units import FloatArray


def turning_point(
    num_samples: ArrayLike, *, similarity_penalty: float, variance_penalty: float
) -> FloatArray:
    """Return the gradient norm at which the contribution starts to rise: lambda_1 + lambda_2 / sqrt(D_i).

    Below it a *smaller* gradient counts more. The share of devices below it tells whether the penalties fit
    the problem, see docs/deviations.md#turning-point.
    """
    samples = np.asarray(num_samples, dtype=np.float64)
    if np.any(~np.isfinite(samples)) or np.any(samples <= 0):
        raise ProblemError(
            f"num_samples must be positive, got {samples.min() if samples.size else samples}. "
            "A device without samples cannot report a contribution; leave it out."
        )
    point: FloatArray = similarity_penalty + variance_penalty / np.sqrt(samples)
    return point


def contribution(
    gradient_norms: ArrayLike,
    num_samples: ArrayLike,
    *,
    similarity_penalty: float,
    variance_penalty: float,
) -> FloatArray:
    """Return u_i = sum_t ||g_t||^2 - 2 (lambda_1 + lambda_2 / sqrt(D_i)) ||g_t||, Eq. (21), shape (devices,).

    ``gradient_norms`` has shape (devices, tau), one column per local step.
    """
    norms = np.asarray(gradient_norms, dtype=np.float64)
    if norms.ndim != 2:
        raise ProblemError(
            f"gradient_norms must have shape (devices, local steps), got {norms.shape}. "
            "Use norms[:, None] for one local step."
        )
    if np.shape(num_samples) != norms.shape[:1]:
        raise ProblemError(
            f"num_samples must have one entry for each of the {norms.shape[0]} devices, got shape "
            f"{np.shape(num_samples)}. Pass the devices' numbers of local samples."
        )
    if norms.size and (np.any(~np.isfinite(norms)) or norms.min() < 0):
        raise ProblemError(
            "gradient_norms must be finite and not negative, got NaN, infinite or negative values. "
            "Lower the learning rate if the loss diverges."
        )
    point = turning_point(
        num_samples, similarity_penalty=similarity_penalty, variance_penalty=variance_penalty
    )
    scores: FloatArray = np.sum(norms * (norms - 2.0 * point[:, None]), axis=1)
    return scores
