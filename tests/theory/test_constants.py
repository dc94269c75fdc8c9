from __future__ import annotations

import itertools
import math
from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedwave.errors import ProblemError
from fedwave.theory import (
    BatchSizes,
    Constants,
    bias_bound,
    first_order_variance,
    hessian_free_variance,
    meta_dissimilarity,
    meta_smoothness,
    meta_variance,
)


def constants(**given: float) -> Constants:
    return Constants(**(dict.fromkeys((field.name for field in fields(Constants)), 0.0) | given))


SOME = constants(
    smoothness=2.0,
    gradient_bound=5.0,
    hessian_lipschitz=7.0,
    gradient_noise=3.0,
    hessian_noise=11.0,
    gradient_dissimilarity=13.0,
    hessian_dissimilarity=17.0,
)
BATCHES = BatchSizes(2, 12, 4)


def test_by_hand() -> None:
    # alpha = 0.5: 1 + alpha L = 2. L_F = 4*2 + 0.5*7*5; Gamma = 4*13 + 0.5*5*17.
    assert meta_smoothness(SOME, inner_lr=0.5) == pytest.approx(8 + 17.5)
    assert meta_dissimilarity(SOME, inner_lr=0.5) == pytest.approx(52 + 42.5)
    assert bias_bound(SOME, BATCHES, inner_lr=0.5) == pytest.approx(0.5 * 3 * 2 * 2 / math.sqrt(2))
    # 1/D' + (alpha L)^2/D = 1/12 + 1/2 = 7/12.
    seven = 7 / 12
    assert meta_variance(SOME, BATCHES, inner_lr=0.5) == pytest.approx(
        6 * 9 * 4 * seven + 3 * (0.5 * 5 * 11) ** 2 / 4 + 6 * (0.5 * 3 * 11) ** 2 / 4 * seven
    )
    assert first_order_variance(SOME, BATCHES, inner_lr=0.5) == pytest.approx(4 * 9 * seven + 2 * 25.0)
    assert hessian_free_variance(SOME, BATCHES, inner_lr=0.5, epsilon=0.1, as_printed=True) == pytest.approx(
        6 * 9 * (0.25 / (0.01 * 4) + 3 * seven) + 2 * (0.5 * 7 * 0.1) ** 2 * 625
    )
    assert hessian_free_variance(SOME, BATCHES, inner_lr=0.5, epsilon=0.1) == pytest.approx(
        6 * 9 * 4 * seven + 3 * (0.5 * 5 * 11) ** 2 / 4 + 0.75 * (0.5 * 7 * 0.1) ** 2 * 625
    )


def test_support_and_query_have_their_own_parts_in_the_noise() -> None:
    # alpha = 0.25: (1 + alpha L)^2 = 9/4, and 1/D' + (alpha L)^2/D = 1/12 + 1/8 = 5/24.
    own = 6 * 9 * 9 / 4 * 5 / 24 + 3 * (0.25 * 5 * 11) ** 2 / 4 + 6 * (0.25 * 3 * 11) ** 2 / 4 * 5 / 24
    assert meta_variance(SOME, BATCHES, inner_lr=0.25) == pytest.approx(own)
    assert first_order_variance(SOME, BATCHES, inner_lr=0.25) == pytest.approx(4 * 9 * 5 / 24 + 2 * 2.5**2)


def test_lemmas_1_and_3_are_reached_by_hills() -> None:
    # f_i = -L/2 t^2 - b_i t has grad F_i = -(1 + aL)^2 (L t + b_i): as steep and as far apart as they allow.
    smoothness, rate, b = 3.0, 0.2, (1.0, 4.0)

    def gradient(t: float, own: float) -> float:
        first = -smoothness * t - own
        return (1 + rate * smoothness) * (-smoothness * (t - rate * first) - own)

    hills = constants(smoothness=smoothness, gradient_dissimilarity=b[1] - b[0])
    assert abs(gradient(1.0, b[0]) - gradient(0.0, b[0])) == pytest.approx(
        meta_smoothness(hills, inner_lr=rate)
    )
    assert abs(gradient(0.5, b[0]) - gradient(0.5, b[1])) == pytest.approx(
        meta_dissimilarity(hills, inner_lr=rate)
    )


def test_lemma_1_bounds_the_curvature_of_a_bent_meta_function() -> None:
    # f = cos t has L = zeta = rho = 1. F's second derivative by differences, on a grid.
    rate = 0.7
    grid = np.linspace(-4, 4, 20001)
    gradient = (1 + rate * np.cos(grid)) * -np.sin(grid + rate * np.sin(grid))
    steepest = np.abs(np.diff(gradient) / np.diff(grid)).max()
    bent = constants(smoothness=1.0, gradient_bound=1.0, hessian_lipschitz=1.0)
    without_rho = constants(smoothness=1.0, gradient_bound=1.0)
    assert 0.9 * meta_smoothness(without_rho, inner_lr=rate) < steepest
    assert steepest <= meta_smoothness(bent, inner_lr=rate)


def enumerated_error(
    atoms: list[tuple[float, float]], theta: float, rate: float, batches: BatchSizes, *, kind: str
) -> tuple[float, float]:
    """Return bias and squared error of Eq. (3) or (51) for l = a t^2/2 - b t, by all batches there are."""
    a_mean, b_mean = np.mean(atoms, axis=0)
    true = (1 - rate * a_mean) * (a_mean * (theta - rate * (a_mean * theta - b_mean)) - b_mean)
    means = {
        size: [np.mean(batch, axis=0) for batch in itertools.product(atoms, repeat=size)]
        for size in {batches.support, batches.query, batches.hessian}
    }
    errors = []
    for a, b in means[batches.support]:
        adapted = theta - rate * (a * theta - b)
        for a1, b1 in means[batches.query]:
            outer = a1 * adapted - b1
            factors = [1.0] if kind == "first-order" else [1 - rate * a2 for a2, _ in means[batches.hessian]]
            errors += [factor * outer - true for factor in factors]
    return float(np.mean(errors)), float(np.mean(np.square(errors)))


@given(
    st.lists(st.tuples(st.floats(-2, 3), st.floats(-3, 3)), min_size=2, max_size=3),
    st.floats(-2, 2),
    st.floats(0.01, 0.8),
    st.tuples(st.integers(1, 2), st.integers(1, 2), st.integers(1, 2)),
)
def test_lemma_2_and_corollary_2_bound_every_error_of_small_problems(
    atoms: list[tuple[float, float]], theta: float, rate: float, sizes: tuple[int, int, int]
) -> None:
    batches = BatchSizes(*sizes)
    curvatures, slopes = np.array(atoms).T
    # Noise is needed at theta and at the adapted models; gradients are linear, so the ends suffice.
    adapted = [theta - rate * (a * theta - b) for a, b in atoms]
    points = np.array([theta, *adapted, theta - rate * (curvatures.mean() * theta - slopes.mean())])
    gradients = curvatures[:, None] * points - slopes[:, None]
    own = constants(
        smoothness=abs(curvatures.mean()),
        gradient_bound=np.abs(gradients.mean(0)).max(),
        gradient_noise=math.sqrt(gradients.var(0).max()),
        hessian_noise=curvatures.std(),
    )
    bias, error = enumerated_error(atoms, theta, rate, batches, kind="exact")
    assert error <= meta_variance(own, batches, inner_lr=rate) * (1 + 1e-9) + 1e-12
    assert abs(bias) <= bias_bound(own, batches, inner_lr=rate) * (1 + 1e-9) + 1e-9
    _, error = enumerated_error(atoms, theta, rate, batches, kind="first-order")
    assert error <= first_order_variance(own, batches, inner_lr=rate) * (1 + 1e-9) + 1e-12


def test_many_devices_at_once_are_as_one_by_one() -> None:
    sizes = np.array([1, 4, 9])
    many = meta_variance(SOME, BatchSizes.of_equal_size(sizes), inner_lr=0.3)
    alone = [meta_variance(SOME, BatchSizes.of_equal_size(int(n)), inner_lr=0.3) for n in sizes]
    assert many == pytest.approx(alone)


def test_what_is_no_constant_is_refused() -> None:
    with pytest.raises(ProblemError, match=r"smoothness must be finite and not negative, got -1\.0"):
        constants(smoothness=-1.0)
    with pytest.raises(ProblemError, match="query batch must have at least one sample, got 0"):
        BatchSizes(1, 0, 1)
    with pytest.raises(ProblemError, match=r"epsilon must be positive and finite, got 0\.0"):
        hessian_free_variance(SOME, BATCHES, inner_lr=0.1, epsilon=0.0)
    for function in (bias_bound, meta_variance, first_order_variance):
        with pytest.raises(ProblemError, match="inner_lr must be finite and not negative, got -1"):
            function(SOME, BATCHES, inner_lr=-1)
    for whole in (meta_smoothness, meta_dissimilarity):
        with pytest.raises(ProblemError, match="inner_lr must be finite"):
            whole(SOME, inner_lr=math.nan)
