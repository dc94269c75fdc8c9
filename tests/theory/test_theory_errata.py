"""Where the paper's analysis fails as printed: each erratum of docs/deviations.md that a number can show."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.stats import binom

from fedwave.allocation import AllocationProblem, allocate
from fedwave.theory import (
    BatchSizes,
    bias_bound,
    corollary_1_bound,
    hessian_free_variance,
    meta_variance,
    similarity_penalty,
    theorem_1_bound,
    variance_penalty,
)
from tests.theory.test_constants import SOME, constants

# Theorem 1 and the devices that are chosen by it -----------------------------------------------------------

NUM_DEVICES, NUM_CHOSEN, META_RATE = 100, 5, 0.01
SHARE, SIZE = 0.1, math.sqrt(10.0)  # noise is +-SIZE with this probability, else 0: of variance one
# Equal devices f = t^2/2 in the minimum, no adaptation: L_F = 1, Gamma = 0, sigma_F^2 = 6 sigma_G^2.
EQUAL = constants(smoothness=1.0, gradient_bound=SIZE, gradient_noise=1.0)


def promised_and_true(mean_square: float) -> tuple[float, float]:
    """Return Theorem 1's fall of F and the true one, by the mean square of a chosen device's gradient."""
    noise = math.sqrt(float(meta_variance(EQUAL, BatchSizes.of_equal_size(1), inner_lr=0.0)))
    # The bound is linear in the squares and, with the conditional second moments given, in nothing else.
    root = math.sqrt(mean_square)
    promised = theorem_1_bound(
        [root], noise, constants=EQUAL, inner_lr=0.0, meta_lr=META_RATE, root_mean_square=[root]
    )
    # The mean of the chosen gradients: signs are fair and independent, so only squares are left.
    return promised, -0.5 * META_RATE**2 * mean_square / NUM_CHOSEN


def test_theorem_1_fails_for_a_selection_by_the_same_noise() -> None:
    loud = np.arange(NUM_DEVICES + 1)
    among_chosen = np.minimum(loud, NUM_CHOSEN) / NUM_CHOSEN
    mean_square = SIZE**2 * float(binom.pmf(loud, NUM_DEVICES, SHARE) @ among_chosen)
    promised, true = promised_and_true(mean_square)
    assert promised == pytest.approx(2.2e-2, rel=0.02)
    assert true == pytest.approx(-1e-4, rel=0.01)
    assert promised > true  # a minimum is promised to fall


def test_theorem_1_holds_there_for_uniform_selection_and_for_whole_sets() -> None:
    promised, true = promised_and_true(1.0)
    assert promised < true < 0
    assert theorem_1_bound([0.0], 0.0, constants=EQUAL, inner_lr=0.0, meta_lr=META_RATE) == 0.0


def test_the_counterexample_by_simulation() -> None:
    rng = np.random.default_rng(0)
    falls, squares = [], []
    for _ in range(4000):
        noise = SIZE * rng.choice([-1.0, 1.0], NUM_DEVICES) * (rng.random(NUM_DEVICES) < SHARE)
        chosen = noise[np.argsort(-np.abs(noise), kind="stable")[:NUM_CHOSEN]]
        falls.append(-0.5 * (META_RATE * chosen.mean()) ** 2)
        squares.append(np.mean(chosen**2))
    promised, true = promised_and_true(float(np.mean(squares)))
    assert np.mean(falls) == pytest.approx(true, rel=0.1)
    assert promised > 0 > np.mean(falls)


def test_the_root_of_gamma_promises_too_much() -> None:
    # Two valleys, t^2/2 -+ 3t, whose gradients are 6 apart; alpha = 0 and whole sets. From t = 0, where F is
    # least, the left one alone uploads: its gradient is 3. Beta = 0.01.
    own = constants(smoothness=1.0, gradient_bound=3.0, gradient_dissimilarity=6.0)
    fall = -0.5 * 0.03**2  # F = t^2/2 around its minimum
    options = {"constants": own, "inner_lr": 0.0, "meta_lr": 0.01}
    assert theorem_1_bound([3.0], 0.0, as_printed=True, **options) > 0 > fall
    assert theorem_1_bound([3.0], 0.0, **options) <= fall


def test_the_drift_needs_the_smoothness_of_f() -> None:
    # gamma_G = sigma = 0 leaves no drift as printed; Hessians that differ make the models drift apart.
    own = constants(smoothness=4.0, gradient_bound=50.0, hessian_dissimilarity=8.0)
    options = {"inner_lr": 0.01, "meta_lr": 0.001, "num_local_steps": 4}
    gamma = 0.01 * 50 * 8
    assert similarity_penalty(own, 0.0, as_printed=True, **options) == pytest.approx(math.sqrt(gamma))
    smooth = 1.04**2 * 4
    drift = 0.001 * smooth * math.sqrt(35 * 12) * gamma
    assert similarity_penalty(own, 0.0, **options) == pytest.approx(gamma + drift)


# Lemma 2 ----------------------------------------------------------------------------------------------------


def test_the_hessians_noise_falls_with_the_batch_in_the_frobenius_norm_alone() -> None:
    # A sample's Hessian is diag(signs), of spectral norm 1; the mean of 8 of them has entries m/8.
    dimension, size = 1000, 8
    heads = np.arange(size + 1)
    entry, odds = np.abs(2 * heads - size) / size, binom.pmf(heads, size, 0.5)
    frobenius = dimension * float(odds @ entry**2)
    assert frobenius == pytest.approx(dimension / size)  # exactly sigma_H^2 / D'' with sigma_H^2 = d
    below = [float(odds[entry <= level].sum()) ** dimension for level in np.unique(entry)]
    spectral = float(np.diff([0.0, *below]) @ np.unique(entry) ** 2)
    assert spectral == pytest.approx(1.0, abs=2e-3)  # eight times what Lemma 2 would have: 1/8
    draws = np.random.default_rng(1).choice([-1.0, 1.0], (50, size, dimension)).mean(1)
    assert np.mean(np.abs(draws).max(1) ** 2) == pytest.approx(spectral, abs=0.01)


def one_batch_twice(outcomes: list[tuple[float, float, float]]) -> tuple[float, float]:
    """Return bias and squared error of Eq. (3) at t = 0 with D'' = D of one sample (odds, a, b); D' whole."""
    odds, curvature, slope = np.array(outcomes).T
    a, b = float(odds @ curvature), float(odds @ slope)
    true = (1 - a) * (a * b - b)  # alpha = 1, t = 0: the adapted model is b
    errors = (1 - curvature) * (a * slope - b) - true
    return float(odds @ errors), float(odds @ errors**2)


def test_one_batch_for_gradient_and_hessian_breaks_the_bound_on_the_bias() -> None:
    # l = a t^2/2 - b t with a = 0.1 +- 3 and b = -+ 1, always together; alpha = 1.
    bias, _ = one_batch_twice([(0.5, 3.1, -1.0), (0.5, -2.9, 1.0)])
    own = constants(smoothness=0.1, gradient_noise=1.0, hessian_noise=3.0)
    allowed = float(bias_bound(own, BatchSizes.of_equal_size(1), inner_lr=1.0))
    assert allowed == pytest.approx(0.11)
    assert abs(bias) == pytest.approx(0.3)  # alpha^2 L Cov(a, b)


def test_one_batch_for_gradient_and_hessian_breaks_the_bound_on_the_variance() -> None:
    # Rare and large: the fourth moment that Eq. (15) would need knows no bound.
    rare, size = 1e-6, 1e3 / math.sqrt(2)  # of variance one each
    outcomes = [(1 - rare, 0.1, 0.0), (rare / 2, 0.1 + size, -size), (rare / 2, 0.1 - size, size)]
    outcomes = [(odds, a, b * math.sqrt(2)) for odds, a, b in outcomes]
    _, error = one_batch_twice(outcomes)
    own = constants(smoothness=0.1, gradient_noise=1.0, hessian_noise=math.sqrt(0.5))
    allowed = float(meta_variance(own, BatchSizes(1, 10**9, 1), inner_lr=1.0))
    assert error > 100 * allowed


# Eq. (18), (20) and Corollary 2 -----------------------------------------------------------------------------


def test_all_local_samples_in_place_of_a_batch_promise_too_little_noise() -> None:
    # Two support samples (D = D'' = 2) and twelve of query: fourteen of them in Eq. (21).
    exact = float(meta_variance(SOME, BatchSizes(2, 12, 2), inner_lr=0.5))
    assert exact > 2 * variance_penalty(SOME, inner_lr=0.5) ** 2 / 14
    assert exact <= variance_penalty(SOME, inner_lr=0.5) ** 2 / 2


def test_the_mean_would_always_choose_one_device_and_the_sum_all_that_are_worth_it() -> None:
    norms, penalty = np.array([9.0, 7.0, 5.0, 1.0]), 2.0
    sets = [own for size in range(1, 5) for own in itertools.combinations(range(4), size)]

    def mean_of(own: tuple[int, ...]) -> float:
        return corollary_1_bound(
            norms[list(own), None],
            np.ones(len(own)),
            similarity_penalty=penalty,
            variance_penalty=0,
            meta_lr=1,
        )

    assert max(sets, key=mean_of) == (0,)
    assert max(sets, key=lambda own: len(own) * mean_of(own)) == (0, 1, 2)


def test_corollary_2_as_printed_explodes_and_what_it_bounds_does_not() -> None:
    # l = a(1 +- 1/2) t^2/2 - (b +- 1) t: quadratic, so the difference of gradients is the product itself.
    rate, batches = 0.1, BatchSizes.of_equal_size(1)
    gradient = 5.0  # of every batch, at most, at the models that occur
    own = constants(smoothness=1.0, gradient_bound=gradient, gradient_noise=1.0, hessian_noise=0.5)
    atoms = [(1.5, 2.0), (0.5, 0.0)]
    theta, errors = 1.0, []
    true = (1 - rate) * ((theta - rate * (theta - 1.0)) - 1.0)
    for (a, b), (a1, b1), (a2, b2) in itertools.product(atoms, repeat=3):
        outer = a1 * (theta - rate * (a * theta - b)) - b1
        assert abs(outer) <= gradient
        for epsilon in (1e-2, 1e-6):
            ahead, behind = (a2 * (theta + side * epsilon * outer) - b2 for side in (1, -1))
            errors.append((outer - rate * (ahead - behind) / (2 * epsilon) - true) ** 2)
    printed, corrected = (
        [
            float(hessian_free_variance(own, batches, inner_lr=rate, epsilon=e, as_printed=flag))
            for e in (1e-2, 1e-6)
        ]
        for flag in (True, False)
    )
    assert printed[0] > 50 * corrected[0]
    assert printed[1] > 1e7 * printed[0]
    assert np.mean(errors) <= corrected[1] == pytest.approx(corrected[0])


def test_a_positive_contribution_needs_a_gradient_within_30_degrees_of_the_global_one() -> None:
    # Without noise and with ||A_i|| itself for lambda_1: u_i > 0 iff ||g_i|| > 2 ||grad F - g_i||.
    rng = np.random.default_rng(2)
    own = rng.normal(size=(200_000, 3))
    mean = own + rng.normal(size=own.shape) * rng.uniform(0, 1, (len(own), 1))
    length, apart = np.linalg.norm(own, axis=1), np.linalg.norm(mean - own, axis=1)
    cosine = np.sum(own * mean, axis=1) / (length * np.linalg.norm(mean, axis=1))
    degrees = np.degrees(np.arccos(np.clip(cosine, -1, 1)))
    is_positive = length**2 - 2 * apart * length > 0
    assert is_positive.sum() > 10_000
    assert degrees[is_positive].max() < 30
    assert degrees[is_positive].max() > 29.5  # and no narrower cone would do


# Lemma 5 ----------------------------------------------------------------------------------------------------


def test_lemma_5_holds_for_the_devices_that_upload_alone() -> None:
    # Two blocks, two strong devices and a weak one that would need 100 times as long at full power.
    problem = AllocationProblem(
        contribution=np.array([5.0, 5.0, 6.0]),
        channel_gain=np.array([1.0, 1.0, 0.005]),
        interference_w=np.zeros(2),
        max_power_w=1.0,
        workload_cycles=0.1,
        max_frequency_hz=1.0,
        capacitance=0.1,
        model_bits=1,
        bandwidth_hz=1,
        noise_psd_w_per_hz=1,
        energy_weight=0.001,
        delay_weight=0.1,
    )
    best = allocate(problem)
    full_power_s = 1.0 / np.log2(1.0 + problem.channel_gain)
    assert (best.block_of_device >= 0).tolist() == [True, True, False]
    assert (best.upload_delay_s >= full_power_s[:2] * (1 - 1e-9)).all()  # (41) for those that upload
    assert best.upload_delay_s < full_power_s[2] / 10  # and not for the other one
    # Eq. (50) begins at the delay of the device that nobody needs, keeps it, and ends below zero.
    printed, weak, strong = (
        allocate(problem, method="ives", **own).trace
        for own in ({}, {"start": float(full_power_s[2])}, {"start": float(full_power_s[0])})
    )
    assert printed[0] == pytest.approx(weak[0])
    assert printed[-1] < 0 < strong[-1] == pytest.approx(best.objective)
