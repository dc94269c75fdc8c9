"""The constants of the paper's assumptions, and what Lemmas 1 to 3 and Corollary 2 make of them."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fedwave.errors import ProblemError
from fedwave.units import FloatArray


@dataclass(frozen=True, kw_only=True)
class Constants:
    """The constants of Assumptions 1 to 4, the largest of all devices and of all models.

    Hessians are measured in the spectral norm, but for ``hessian_noise``: Lemma 2 divides it by the batch
    size, which is true in the Frobenius norm alone, see docs/deviations.md#constants-of-theorem-1.
    """

    smoothness: float  # L, of f_i
    gradient_bound: float  # zeta, of the norm of f_i's gradient
    hessian_lipschitz: float  # rho
    gradient_noise: float  # sigma_G, of one sample's gradient
    hessian_noise: float  # sigma_H, of one sample's Hessian
    gradient_dissimilarity: float  # gamma_G, between two devices
    hessian_dissimilarity: float  # gamma_H, between two devices

    def __post_init__(self) -> None:
        for field in fields(self):
            _require_non_negative(field.name, getattr(self, field.name))


@dataclass(frozen=True)
class BatchSizes:
    """How many samples the three batches of Eq. (3) have: numbers, or one for each device."""

    support: Any  # D
    query: Any  # D'
    hessian: Any  # D''

    def __post_init__(self) -> None:
        for field in fields(self):
            values = np.asarray(getattr(self, field.name), dtype=np.float64)
            if values.size and not (np.isfinite(values).all() and values.min() > 0):
                raise ProblemError(
                    f"the {field.name} batch must have at least one sample, got {values.min()}. "
                    "Lemma 2 divides by its size."
                )

    @classmethod
    def of_equal_size(cls, num_samples: ArrayLike) -> BatchSizes:
        """Return batches of one size, as Corollary 1 has them."""
        return cls(num_samples, num_samples, num_samples)


def meta_smoothness(constants: Constants, *, inner_lr: float) -> float:
    """Return L_F = (1 + alpha L)^2 L + alpha rho zeta, the smoothness of F_i and of F, Lemma 1."""
    _require_non_negative("inner_lr", inner_lr)
    bent = (1.0 + inner_lr * constants.smoothness) ** 2 * constants.smoothness
    return bent + inner_lr * constants.hessian_lipschitz * constants.gradient_bound


def bias_bound(constants: Constants, batches: BatchSizes, *, inner_lr: float) -> FloatArray:
    """Return alpha sigma_G L (1 + alpha L) / sqrt(D), the bound on the meta-gradient's bias, Eq. (13).

    It needs D'' drawn apart from D: see docs/deviations.md#constants-of-theorem-1.
    """
    _require_non_negative("inner_lr", inner_lr)
    bent = inner_lr * constants.smoothness
    support = np.asarray(batches.support, dtype=np.float64)
    bound: FloatArray = constants.gradient_noise * bent * (1.0 + bent) / np.sqrt(support)
    return bound


def meta_variance(constants: Constants, batches: BatchSizes, *, inner_lr: float) -> FloatArray:
    """Return sigma_F^2, the bound on the meta-gradient's mean squared error, Eq. (14) and (15) of Lemma 2."""
    _require_non_negative("inner_lr", inner_lr)
    adapted = _adapted_gradient_noise(constants, batches, inner_lr)
    product = inner_lr**2 * constants.hessian_noise**2 / np.asarray(batches.hessian, dtype=np.float64)
    bent = 1.0 + inner_lr * constants.smoothness
    variance: FloatArray = 3.0 * (
        bent**2 * adapted + constants.gradient_bound**2 * product + product * adapted
    )
    return variance


def first_order_variance(constants: Constants, batches: BatchSizes, *, inner_lr: float) -> FloatArray:
    """Return the same for the gradient without a Hessian, Eq. (51): Corollary 2, above."""
    _require_non_negative("inner_lr", inner_lr)
    missing = inner_lr * constants.smoothness * constants.gradient_bound
    variance: FloatArray = 2.0 * _adapted_gradient_noise(constants, batches, inner_lr) + 2.0 * missing**2
    return variance


def hessian_free_variance(
    constants: Constants,
    batches: BatchSizes,
    *,
    inner_lr: float,
    epsilon: float,
    as_printed: bool = False,
) -> FloatArray:
    """Return the same where the Hessian's product is a difference of gradients, Eq. (52): Corollary 2, below.

    As printed it counts the two gradients' noise as if they came from two batches, alpha^2 / (eps^2 D''),
    which grows beyond all bounds as eps shrinks. They share a batch: their difference is a Hessian of that
    batch, averaged over the way, and so as noisy as one. Both need every *batch's* gradient to be at most
    zeta.
    """
    _require_non_negative("inner_lr", inner_lr)
    if not (math.isfinite(epsilon) and epsilon > 0):
        raise ProblemError(f"epsilon must be positive and finite, got {epsilon}. It is the step of Eq. (52).")
    adapted = _adapted_gradient_noise(constants, batches, inner_lr)
    hessian = np.asarray(batches.hessian, dtype=np.float64)
    bent, zeta = inner_lr * constants.smoothness, constants.gradient_bound
    curved = (inner_lr * constants.hessian_lipschitz * epsilon) ** 2 * zeta**4
    if as_printed:
        noise = 6.0 * constants.gradient_noise**2 * inner_lr**2 / (epsilon**2 * hessian)
        printed: FloatArray = noise + 3.0 * (1.0 + 2.0 * bent**2) * adapted + 2.0 * curved
        return printed
    noise = 3.0 * (inner_lr * zeta * constants.hessian_noise) ** 2 / hessian
    # On the way from -eps to eps the model is eps / 2 times the gradient away on average: a quarter squared.
    corrected: FloatArray = 3.0 * (1.0 + bent) ** 2 * adapted + noise + 0.75 * curved
    return corrected


def meta_dissimilarity(constants: Constants, *, inner_lr: float) -> float:
    """Return Gamma = (1 + alpha L)^2 gamma_G + alpha zeta gamma_H, between two meta-gradients, Lemma 3."""
    _require_non_negative("inner_lr", inner_lr)
    gradients = (1.0 + inner_lr * constants.smoothness) ** 2 * constants.gradient_dissimilarity
    return gradients + inner_lr * constants.gradient_bound * constants.hessian_dissimilarity


def _adapted_gradient_noise(constants: Constants, batches: BatchSizes, inner_lr: float) -> FloatArray:
    """Return 2 sigma_G^2 (1/D' + (alpha L)^2 / D), the bound on E||delta_2||^2 in the proof of Lemma 2."""
    support = np.asarray(batches.support, dtype=np.float64)
    query = np.asarray(batches.query, dtype=np.float64)
    bent = inner_lr * constants.smoothness
    noise: FloatArray = 2.0 * constants.gradient_noise**2 * (1.0 / query + bent**2 / support)
    return noise


def _require_non_negative(name: str, value: float) -> None:
    if not (math.isfinite(value) and value >= 0):
        raise ProblemError(f"{name} must be finite and not negative, got {value}. Constants bound norms.")
