"""The bound G(tau) against its formula as printed, exact fractions, brute force, and gradient descent."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedwave.errors import ProblemError
from fedwave.server.steps_bound import (
    Budget,
    Landscape,
    best_num_steps,
    control_bound,
    drift,
    steps_in_budget,
)


def landscape(**changes: float) -> Landscape:
    usual = {"loss_lipschitz": 2.0, "smoothness": 2.0, "gradient_divergence": 3.0, "step_size": 0.1}
    return Landscape(**{**usual, **changes})


def plain_bound(tau: int, land: Landscape, budgets: list[Budget], phi: float) -> float:
    """G(tau) as the paper prints it, number by number; fractions do not cancel."""
    eta, rho, beta = land.step_size, land.loss_lipschitz, Fraction(land.smoothness)
    delta, x = Fraction(land.gradient_divergence), Fraction(eta) * beta
    h = float(max(delta / beta * ((1 + x) ** tau - 1) - Fraction(eta) * delta * tau, Fraction(0)))
    steps = min((b.total - b.fixed - b.step) * tau / (b.step * tau + b.fixed) for b in budgets)
    root = math.sqrt(1 + 4 * eta * phi * steps**2 * rho * h / tau)
    return (1 + root) / (2 * eta * phi * steps) + rho * h


def test_the_drift_by_hand() -> None:
    # 3/2 (1.2^tau - 1) - 0.3 tau
    np.testing.assert_allclose(drift(3, landscape()), [0.0, 0.06, 0.192], rtol=1e-13, atol=0)
    assert drift(1, landscape())[0] == 0.0


@pytest.mark.parametrize("smoothness", ["1e-5", "0.37", "25", "4000"])
def test_the_drift_is_that_of_exact_fractions(smoothness: str) -> None:
    eta, beta, delta = Fraction(1, 64), Fraction(smoothness), Fraction(7, 4)
    exact = [delta / beta * ((1 + eta * beta) ** tau - 1) - eta * delta * tau for tau in range(1, 41)]
    land = landscape(smoothness=float(beta), gradient_divergence=1.75, step_size=1 / 64)
    np.testing.assert_allclose(drift(40, land), [float(value) for value in exact], rtol=1e-12, atol=0)


def test_the_drift_bounds_how_far_local_descent_strays_on_quadratics() -> None:
    rng = np.random.default_rng(3)
    for _ in range(20):
        curvature = rng.uniform(0.2, 2.0, 5)  # F_i(w) = a_i / 2 |w - m_i|^2
        minimum = rng.normal(size=(5, 3))
        start, eta = rng.normal(size=3), 0.1
        points = start + rng.normal(size=(400, 3)) * 3.0
        gradients = curvature[:, None] * (points[:, None] - minimum)
        spread = np.linalg.norm(gradients - gradients.mean(1, keepdims=True), axis=2).max(0)  # delta_i
        land = landscape(smoothness=curvature.max(), gradient_divergence=float(spread.mean()), step_size=eta)
        local, central = np.repeat(start[None], 5, axis=0), start
        for tau in range(1, 9):
            local = local - eta * curvature[:, None] * (local - minimum)
            central = central - eta * (curvature[:, None] * (central - minimum)).mean(0)
            gone = np.linalg.norm(local.mean(0) - central)
            assert gone <= drift(tau, land)[-1] + 1e-12
        assert gone > 0.0


def test_devices_that_agree_never_drift() -> None:
    assert drift(5, landscape(gradient_divergence=0.0)).tolist() == [0.0] * 5
    assert drift(100, landscape(gradient_divergence=0.0, smoothness=1e8))[-1] == 0.0  # not infinity times 0


def test_steps_in_a_budget_by_hand_are_those_of_the_scarcer_resource() -> None:
    seconds, joules = Budget(total=100.0, step=1.0, fixed=9.0), Budget(total=44.0, step=3.0, fixed=1.0)
    np.testing.assert_allclose(steps_in_budget(3, [seconds]), [90 / 10, 180 / 11, 270 / 12])
    np.testing.assert_allclose(steps_in_budget(3, [joules]), [40 / 4, 80 / 7, 120 / 10])
    np.testing.assert_allclose(steps_in_budget(3, [seconds, joules]), [9.0, 80 / 7, 12.0])


def test_what_costs_nothing_has_room_without_end() -> None:
    free = Budget(total=5.0, step=0.0, fixed=0.0)
    assert np.isinf(steps_in_budget(3, [free])).all()
    rise = 2.0 * drift(3, landscape())
    expected = np.sqrt(rise / (0.1 * 0.5 * np.arange(1, 4))) + rise
    np.testing.assert_allclose(control_bound(3, landscape(), [free], phi=0.5), expected)


positive = st.floats(1e-3, 1e3)


@given(
    rho=positive,
    beta=st.floats(1e-3, 50.0),
    delta=positive,
    eta=st.floats(1e-3, 0.5),
    phi=st.floats(1e-5, 1.0),
    costs=st.lists(st.tuples(st.floats(20.0, 1e4), st.floats(1e-3, 5.0), st.floats(1e-3, 5.0)), min_size=1,
                   max_size=2),
    max_steps=st.integers(1, 30),
)  # fmt: skip
def test_the_bound_and_its_minimum_are_those_of_the_plain_formula(
    rho: float, beta: float, delta: float, eta: float, phi: float, costs: Any, max_steps: int
) -> None:
    land = Landscape(loss_lipschitz=rho, smoothness=beta, gradient_divergence=delta, step_size=eta)
    budgets = [Budget(total=total, step=step, fixed=fixed) for total, step, fixed in costs]
    plain = [plain_bound(tau, land, budgets, phi) for tau in range(1, max_steps + 1)]
    np.testing.assert_allclose(control_bound(max_steps, land, budgets, phi=phi), plain, rtol=1e-9)
    tau, value = best_num_steps(max_steps, land, budgets, phi=phi)
    assert 1 <= tau <= max_steps
    assert value == pytest.approx(min(plain), rel=1e-9)
    assert plain[tau - 1] == pytest.approx(min(plain), rel=1e-9)


def test_dear_uploads_ask_for_more_steps_and_disagreement_for_fewer() -> None:
    def best(fixed: float, delta: float) -> int:
        budget = Budget(total=2e4, step=1.0, fixed=fixed)
        land = landscape(gradient_divergence=delta, smoothness=0.1, step_size=0.01)
        return best_num_steps(100, land, [budget], phi=0.025)[0]

    by_cost = [best(fixed, 3.0) for fixed in (0.0, 30.0, 1000.0)]
    by_spread = [best(30.0, delta) for delta in (0.3, 3.0, 300.0)]
    assert by_cost == sorted(set(by_cost))
    assert by_spread == sorted(set(by_spread), reverse=True)
    assert best(0.0, 300.0) == 1


def test_of_equals_the_smallest_number_of_steps_is_taken() -> None:
    equal = landscape(gradient_divergence=0.0)  # no drift, and no cost beside the steps'
    assert best_num_steps(9, equal, [Budget(total=8.0, step=0.5, fixed=0.0)], phi=1.0)[0] == 1


def test_a_budget_of_less_than_one_round_bounds_nothing() -> None:
    poor = [Budget(total=3.0, step=1.0, fixed=2.0)]
    assert np.isinf(control_bound(4, landscape(), poor, phi=1.0)).all()


def test_a_drift_beyond_all_numbers_is_infinite_and_not_wanted() -> None:
    steep = landscape(smoothness=1e8)
    assert np.isinf(drift(100, steep)[-1])
    rich = [Budget(total=1e6, step=1e-3, fixed=1.0)]
    assert best_num_steps(100, steep, rich, phi=1e-3)[0] == 1


@given(total=st.integers(0, 60), spent=st.integers(0, 60), step=st.integers(1, 7), fixed=st.integers(0, 9))
def test_what_is_left_is_the_most_steps_that_fit(total: int, spent: int, step: int, fixed: int) -> None:
    fitting = [tau for tau in range(1, 70) if spent + fixed + step * tau <= total]
    assert Budget(total=total, step=step, fixed=fixed, spent=spent).steps_left() == max(fitting, default=0)


def test_steps_without_a_cost_are_limited_by_the_rest_of_the_round_alone() -> None:
    assert Budget(total=5.0, step=0.0, fixed=5.0).steps_left() == math.inf
    assert Budget(total=4.9, step=0.0, fixed=5.0).steps_left() == 0.0


def test_a_round_has_at_least_one_step() -> None:
    with pytest.raises(ProblemError, match="max_steps must be >= 1, got 0. A round has at least one"):
        best_num_steps(0, landscape(), [Budget(total=9.0, step=1.0, fixed=1.0)], phi=1.0)
