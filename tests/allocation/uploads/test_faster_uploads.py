"""The worth of a pair at its own SNR: the two lemmas of docs/allocation-proofs.md, and what uses them."""

from __future__ import annotations

import math
from dataclasses import replace

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mpf

from fedwave.allocation.uploads.faster_uploads import may_be_faster
from fedwave.allocation.uploads.pairs import all_pairs
from fedwave.allocation.uploads.snr_range import snr_floor, thrifty_snr
from fedwave.wireless.rate import RadioPower, RateModel
from tests.allocation.allocation_problems import link_problem, small_problem
from tests.allocation.link_oracle import Pair


def exponents(low, high):
    return st.floats(low, high).map(lambda value: mpf(10) ** mpf(value))


def slope_in_e(y, *, u, k, kappa, m):
    """Return dg/de at an SNR y by the formula of the docs."""
    v = mpmath.log1p(y)
    steep = (1 + y) * v - y
    return (u * m * mpmath.exp(-m / y) * v**2 * (1 + y) / y**2 - k * steep + kappa) / steep


@given(
    exponents(-3, 6), exponents(-6, 3), st.one_of(st.just(mpf(0)), exponents(-6, 5)), exponents(-6, 4),
    st.floats(-6, 5), st.floats(-3, 2),
)  # fmt: skip
def test_from_m_on_the_worth_is_concave_in_e(u, k, kappa, m, place, width):
    with mpmath.workdps(50):
        first = m * (1 + mpf(10) ** mpf(place))
        second = first * (1 + mpf(10) ** mpf(width))
        terms = {"u": u, "k": k, "kappa": kappa, "m": m}
        assert slope_in_e(second, **terms) <= slope_in_e(first, **terms) * (1 + mpf("1e-40")) + mpf("1e-60")

        def worth(y):
            return u * mpmath.exp(-m / y) - (k * y + kappa) / mpmath.log1p(y)

        step = first * mpf("1e-20")
        change = worth(first + step) - worth(first - step)
        width_e = (first + step) / mpmath.log1p(first + step) - (first - step) / mpmath.log1p(first - step)
        size = k + u * m / first**2 + kappa
        assert abs(change / width_e - slope_in_e(first, **terms)) < mpf("1e-6") * size * (1 + 1 / first)


@given(
    exponents(-3, 6),
    exponents(-6, 3),
    st.one_of(st.just(mpf(0)), exponents(-6, 5)),
    exponents(-6, 4),
    st.floats(-3, 0),
)
def test_below_m_the_worth_rises_where_it_is_positive(u, k, kappa, m, place):
    with mpmath.workdps(50):
        y = m * mpf(10) ** mpf(place)
        if u * mpmath.exp(-m / y) > (k * y + kappa) / mpmath.log1p(y):
            assert slope_in_e(y, u=u, k=k, kappa=kappa, m=m) >= 0
        nats = mpmath.log1p(y) / 2  # past a cap of the rate at half as many nats
        if u * mpmath.exp(-m / y) > (k * y + kappa) / nats:
            assert u * m * mpmath.exp(-m / y) / y**2 >= k / nats


def choosing_problem(seed):
    rng = np.random.default_rng(seed)
    features = [f for f in ("circuit", "errors", "rate", "outage", "energy", "delay") if rng.random() < 0.6]
    problem = link_problem(rng, features, max_devices=4, max_blocks=3)
    if not may_be_faster(problem):
        problem = replace(problem, packet_error_waterfall=0.3)
    return problem


def useful_pairs(problem):
    """Yield (pair of the oracle, row, column) of the pairs that can be worth anything."""
    table = all_pairs(problem)
    for row, column in zip(*np.nonzero(table.snr_cap > 0), strict=True):
        yield table, Pair(problem, int(table.device[0, column]), int(table.block[row])), row, column


@pytest.mark.parametrize("seed", range(40))
def test_the_favourite_is_the_best_snr_of_all(seed):
    problem = choosing_problem(seed)
    for table, pair, row, column in useful_pairs(problem):
        favourite = float(table.faster.favourite[row, column])
        snr = np.geomspace(max(snr_floor(problem), 1e-6), pair.top, 4000)
        best = float(np.max(pair.worth(snr), initial=-np.inf))
        worth = float(table.faster.worth[row, column])
        assert worth > 0
        assert worth >= best - 1e-9 * (abs(best) + problem.contribution.max())
        used = max(favourite, snr_floor(problem))
        assert pair.worth(used) == pytest.approx(worth, abs=1e-9) or favourite < snr_floor(problem)


def test_the_most_economical_snr_by_hand_and_on_a_grid():
    # (1 + x) ln(1 + x) - x = 1 at x = e - 1.
    problem = small_problem(radio=RadioPower(circuit_power_w=1.0))
    first = np.array([0])
    assert thrifty_snr(problem, first, first)[0] == pytest.approx(math.e - 1)
    halved = replace(problem, radio=RadioPower(amplifier_efficiency=0.5, circuit_power_w=2.0))
    assert thrifty_snr(halved, first, first)[0] == pytest.approx(math.e - 1)
    assert thrifty_snr(replace(problem, radio=RadioPower()), first, first)[0] == 0.0
    capped = replace(problem, rate=RateModel(max_spectral_efficiency=1.0))
    assert thrifty_snr(capped, first, first)[0] == pytest.approx(1.0)
    snr = np.linspace(0.5, 4, 100_001)
    assert snr[np.argmin((snr + 1) / np.log(1 + snr))] == pytest.approx(math.e - 1, abs=1e-4)


def test_only_terms_that_reward_speed_make_uploads_faster():
    assert not may_be_faster(small_problem())
    assert not may_be_faster(small_problem(min_snr=1.0, rate=RateModel(efficiency=0.5)))
    assert not may_be_faster(small_problem(radio=RadioPower(amplifier_efficiency=0.3)))
    assert not may_be_faster(small_problem(radio=RadioPower(circuit_power_w=1.0), energy_weight=0.0))
    assert may_be_faster(small_problem(radio=RadioPower(circuit_power_w=1.0)))
    limited = small_problem(radio=RadioPower(circuit_power_w=1.0), energy_weight=0.0, max_energy_j=1.0)
    assert may_be_faster(limited)
    assert may_be_faster(small_problem(packet_error_waterfall=0.1))
    assert may_be_faster(small_problem(min_snr=2.0, rate=RateModel(max_spectral_efficiency=1.0)))
