"""What the paper promises of a round, Theorem 1 and Corollary 1, and the penalties it needs, Eq. (19), (20).

Each as printed and corrected: docs/deviations.md#constants-of-theorem-1 says what is wrong, and
tests/theory/test_theory_errata.py shows it. None of them holds where devices are chosen by the noise of their
own gradients, as NUFM chooses them on drawn batches; with whole sets and f_i the loss on them there is none.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from fedwave.errors import ProblemError
from fedwave.selection import contribution
from fedwave.theory.constants import Constants, meta_dissimilarity, meta_smoothness
from fedwave.units import FloatArray

DRIFT = 35.0  # of Fallah et al., Corollary F.2: how far apart tau local steps take the models


def theorem_1_bound(
    gradient_norms: ArrayLike,
    meta_noise: ArrayLike,
    *,
    constants: Constants,
    inner_lr: float,
    meta_lr: float,
    root_mean_square: ArrayLike | None = None,
    as_printed: bool = False,
) -> float:
    """Return the least fall of F in a round of one local step, the right side of Theorem 1, Eq. (17).

    ``gradient_norms`` and ``meta_noise`` (sigma_F) are those of the devices that upload. Theorem 1 also has
    their expected squared norms; ``root_mean_square`` are the roots of these, and the norms stand for them
    where it is not given, as in Eq. (21). As printed the root of Gamma is taken where Lemma 3 gives Gamma.
    """
    norms, noise, spread = _of_devices(gradient_norms, meta_noise, root_mean_square)
    gamma = meta_dissimilarity(constants, inner_lr=inner_lr)
    apart = math.sqrt(gamma) if as_printed else gamma
    gain = 1.0 - 0.5 * meta_lr * meta_smoothness(constants, inner_lr=inner_lr)
    return float(meta_lr * np.mean(gain * norms**2 - (apart + noise) * spread))


def corollary_1_bound(
    gradient_norms: ArrayLike,
    num_samples: ArrayLike,
    *,
    similarity_penalty: float,
    variance_penalty: float,
    meta_lr: float,
) -> float:
    """Return the least fall of F in a round, right side of Corollary 1, Eq. (18): beta/2 times the mean u_i.

    ``gradient_norms`` has shape (devices, tau). Problem (P) adds the u_i up instead: for a fixed number of
    devices that is the same choice, for a free one the mean would always choose a single device.
    """
    scores = contribution(
        gradient_norms,
        num_samples,
        similarity_penalty=similarity_penalty,
        variance_penalty=variance_penalty,
    )
    if scores.size == 0:
        raise ProblemError("Corollary 1 needs the devices that upload, got none. Without one nothing falls.")
    return float(0.5 * meta_lr * np.mean(scores))


def similarity_penalty(
    constants: Constants,
    meta_noise: float,
    *,
    inner_lr: float,
    meta_lr: float,
    num_local_steps: int,
    as_printed: bool = False,
) -> float:
    """Return the least lambda_1 of Corollary 1, Eq. (19); ``meta_noise`` is the largest sigma_F of a device.

    Corrected it is Gamma + beta L_F sqrt(35 tau (tau - 1) (Gamma^2 + 2 sigma_F^2)): Lemma 3 gives Gamma and
    not its root, the drift is one of gradients (L_F) between meta-functions (Gamma, not gamma_G), and the
    first of the tau steps has none.
    """
    gamma = meta_dissimilarity(constants, inner_lr=inner_lr)
    if as_printed:
        apart = constants.gradient_dissimilarity**2 + 2.0 * meta_noise**2
        return math.sqrt(gamma) + meta_lr * num_local_steps * math.sqrt(DRIFT * apart)
    smoothness = meta_smoothness(constants, inner_lr=inner_lr)
    steps = num_local_steps * (num_local_steps - 1)
    return gamma + meta_lr * smoothness * math.sqrt(DRIFT * steps * (gamma**2 + 2.0 * meta_noise**2))


def variance_penalty(constants: Constants, *, inner_lr: float) -> float:
    """Return the least lambda_2 of Corollary 1, Eq. (20), which is right as printed.

    It bounds sigma_F by lambda_2 / sqrt(D_i) where D_i is the size of *each* of the three batches.
    """
    bent = inner_lr * constants.smoothness
    hessian = inner_lr * constants.hessian_noise
    gradients = 6.0 * constants.gradient_noise**2 * (1.0 + bent**2) * (hessian**2 + (1.0 + bent) ** 2)
    return math.sqrt(gradients + 3.0 * (constants.gradient_bound * hessian) ** 2)


def largest_meta_lr(
    constants: Constants, *, inner_lr: float, num_local_steps: int, as_printed: bool = False
) -> float:
    """Return below which beta Corollary 1 speaks: 1/L_F; its proof needs 1/(10 L_F tau) if tau > 1."""
    smoothness = meta_smoothness(constants, inner_lr=inner_lr)
    if smoothness == 0.0:
        return math.inf
    return 1.0 / (smoothness * (1.0 if as_printed or num_local_steps == 1 else 10.0 * num_local_steps))


def _of_devices(
    gradient_norms: ArrayLike, meta_noise: ArrayLike, root_mean_square: ArrayLike | None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    norms = np.asarray(gradient_norms, dtype=np.float64)
    noise = np.broadcast_to(np.asarray(meta_noise, dtype=np.float64), norms.shape)
    spread = norms if root_mean_square is None else np.asarray(root_mean_square, dtype=np.float64)
    if norms.ndim != 1 or norms.size == 0 or spread.shape != norms.shape:
        raise ProblemError(
            f"gradient_norms must have one entry for each device that uploads, got {norms.shape} (second "
            f"moments {spread.shape}). Without an upload nothing falls."
        )
    return norms, noise, spread
