from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedwave.errors import ProblemError
from fedwave.theory import (
    BatchSizes,
    corollary_1_bound,
    largest_meta_lr,
    meta_dissimilarity,
    meta_smoothness,
    meta_variance,
    similarity_penalty,
    theorem_1_bound,
    variance_penalty,
)
from tests.theory.test_constants import SOME, constants

RATES = {"inner_lr": 0.5, "meta_lr": 0.01}


def test_by_hand() -> None:
    # Of SOME with alpha = 0.5: L_F = 25.5, Gamma = 94.5. Two devices with norms 3 and 5, sigma_F 1 and 2.
    gain = 1 - 0.5 * 25.5 * 0.01
    expected = 0.01 * ((gain * 9 - 95.5 * 3) + (gain * 25 - 96.5 * 5)) / 2
    got = theorem_1_bound([3.0, 5.0], [1.0, 2.0], constants=SOME, **RATES)
    assert got == pytest.approx(expected)
    root = math.sqrt(94.5)
    expected = 0.01 * ((gain * 9 - (root + 1) * 4) + (gain * 25 - (root + 2) * 6)) / 2
    got = theorem_1_bound(
        [3.0, 5.0], [1.0, 2.0], constants=SOME, root_mean_square=[4.0, 6.0], as_printed=True, **RATES
    )
    assert got == pytest.approx(expected)
    # Corollary 1: two devices of two steps on 4 and 16 samples; turning points 1.35 and 1.025.
    got = corollary_1_bound(
        [[3.0, 5.0], [1.0, 2.0]], [4, 16], similarity_penalty=0.7, variance_penalty=1.3, meta_lr=0.2
    )
    assert got == pytest.approx(0.1 * ((34 - 2.7 * 8) + (5 - 2.05 * 3)) / 2)


def test_the_penalties_by_hand() -> None:
    options = {"inner_lr": 0.5, "meta_lr": 0.01, "num_local_steps": 3}
    printed = similarity_penalty(SOME, 6.0, as_printed=True, **options)
    assert printed == pytest.approx(math.sqrt(94.5) + 0.03 * math.sqrt(35 * (169 + 72)))
    corrected = similarity_penalty(SOME, 6.0, **options)
    assert corrected == pytest.approx(94.5 + 0.01 * 25.5 * math.sqrt(35 * 6 * (94.5**2 + 72)))
    assert similarity_penalty(SOME, 6.0, **{**options, "num_local_steps": 1}) == pytest.approx(94.5)
    assert variance_penalty(SOME, inner_lr=0.5) == pytest.approx(
        math.sqrt(6 * 9 * 2 * (5.5**2 + 4) + 3 * (0.5 * 5 * 11) ** 2)
    )
    assert largest_meta_lr(SOME, inner_lr=0.5, num_local_steps=3) == pytest.approx(1 / (30 * 25.5))
    assert largest_meta_lr(SOME, inner_lr=0.5, num_local_steps=1) == pytest.approx(1 / 25.5)
    assert largest_meta_lr(SOME, inner_lr=0.5, num_local_steps=3, as_printed=True) == pytest.approx(1 / 25.5)
    assert largest_meta_lr(constants(), inner_lr=0.5, num_local_steps=1) == math.inf


@given(st.integers(1, 200), st.floats(0, 1))
def test_lambda_2_over_the_root_of_the_batch_size_covers_lemma_2(size: int, rate: float) -> None:
    equal = BatchSizes.of_equal_size(size)
    covered = variance_penalty(SOME, inner_lr=rate) ** 2 / size
    exact = float(meta_variance(SOME, equal, inner_lr=rate))
    assert exact <= covered * (1 + 1e-12)
    assert size > 1 or exact == pytest.approx(covered)


@pytest.mark.parametrize("num_steps", [2, 3, 5, 10, 50])
def test_35_bounds_the_recursion_of_the_drift(num_steps: int) -> None:
    # Eq. (119), with its free epsilon = 1/(2 tau), beta at its limit, and similarity and noise of size one.
    smoothness, rate = 1.0, 1.0 / (10 * num_steps)
    free = 1 / (2 * num_steps)
    apart = 0.0
    for step in range(1, num_steps):
        grow = 1 + free + 16 * (rate * smoothness) ** 2 * (1 + 1 / free)
        apart = grow * apart + 4 * rate**2 * (1 + 1 / free)
        assert apart <= 35 * rate**2 * step * num_steps
    assert apart >= 9.9 * rate**2 * (num_steps - 1) * num_steps


@given(
    st.lists(st.tuples(st.floats(-3, 3), st.floats(-1, 2)), min_size=2, max_size=6),
    st.floats(-3, 3),
    st.floats(0.0, 0.3),
    st.floats(0.001, 0.2),
    st.data(),
)
def test_theorem_1_holds_for_quadratics_without_noise_whoever_uploads(
    devices: list[tuple[float, float]], theta: float, rate: float, meta_rate: float, data: st.DataObject
) -> None:
    b, a = np.array(devices).T
    chosen = data.draw(st.lists(st.integers(0, len(a) - 1), min_size=1, unique=True))

    def meta_loss(t: float) -> float:
        adapted = t - rate * (a * t - b)
        return float(np.mean(a * adapted**2 / 2 - b * adapted))

    meta_gradients = (1 - rate * a) * (a * (theta - rate * (a * theta - b)) - b)
    points = theta + np.linspace(-40, 40, 3)  # gradients are linear: extremes bound all between
    gradients = a[:, None] * points - b[:, None]
    own = constants(
        smoothness=np.abs(a).max(),
        gradient_bound=np.abs(gradients).max(),
        gradient_dissimilarity=max(np.ptp(column) for column in gradients.T),
        hessian_dissimilarity=np.ptp(a),
    )
    after = theta - meta_rate * meta_gradients[chosen].mean()
    fall = meta_loss(theta) - meta_loss(float(after))
    promised = theorem_1_bound(
        np.abs(meta_gradients[chosen]), 0.0, constants=own, inner_lr=rate, meta_lr=meta_rate
    )
    assert promised <= fall + 1e-9


def test_theorem_1_is_exact_for_equal_valleys_of_slope_one() -> None:
    # alpha = 0, all devices f = t^2/2: F falls by t^2/2 - (1 - beta)^2 t^2/2 = beta (1 - beta/2) t^2.
    own = constants(smoothness=1.0, gradient_bound=3.0)
    promised = theorem_1_bound([3.0], 0.0, constants=own, inner_lr=0.0, meta_lr=0.25)
    assert promised == pytest.approx(4.5 - 0.75**2 * 4.5)


def test_corollary_1_promises_no_more_than_theorem_1() -> None:
    sizes = np.array([2, 6, 9])
    noise = np.sqrt(meta_variance(SOME, BatchSizes.of_equal_size(sizes), inner_lr=0.05))
    meta_rate = 0.99 * largest_meta_lr(SOME, inner_lr=0.05, num_local_steps=1)
    norms = np.array([40.0, 90.0, 300.0])
    one = theorem_1_bound(norms, noise, constants=SOME, inner_lr=0.05, meta_lr=meta_rate)
    first = similarity_penalty(SOME, float(noise.max()), inner_lr=0.05, meta_lr=meta_rate, num_local_steps=1)
    two = corollary_1_bound(
        norms[:, None],
        sizes,
        similarity_penalty=first,
        variance_penalty=variance_penalty(SOME, inner_lr=0.05),
        meta_lr=meta_rate,
    )
    assert two <= one
    assert meta_dissimilarity(SOME, inner_lr=0.05) == first
    assert meta_smoothness(SOME, inner_lr=0.05) * meta_rate == pytest.approx(0.99)


def test_nobody_is_refused() -> None:
    with pytest.raises(ProblemError, match="one entry for each device that uploads, got \\(0,\\)"):
        theorem_1_bound([], [], constants=SOME, **RATES)
    with pytest.raises(ProblemError, match="needs the devices that upload, got none"):
        corollary_1_bound(np.zeros((0, 1)), [], similarity_penalty=1, variance_penalty=1, meta_lr=1)
