from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from numpy.testing import assert_allclose

from fedwave.allocation import allocate
from fedwave.allocation.uploads.power import (
    best_common_snr,
    delay_factor,
    energy_factor,
    optimal_snr,
    optimal_snrs,
    snr_of_delay,
    snr_of_energy_factor,
    steepness,
)
from tests.allocation.allocation_oracles import powers_by_stragglers, snr_by_bisection, upload_value
from tests.allocation.allocation_problems import paper_problem


@pytest.mark.parametrize("exponent", np.linspace(-12, 12, 97))
def test_closed_form_snr_is_exact_over_24_decades(exponent):
    c = 10.0**exponent
    with mpmath.workdps(60):
        exact = mpmath.exp(1 + mpmath.lambertw((mpmath.mpf(c) - 1) / mpmath.e)) - 1
    assert float(abs(optimal_snr(c) - exact) / exact) < 2e-14


@pytest.mark.parametrize("c", [1e-300, 1e-30, 1e-16, 1 - 1e-16, 1.0, 1 + 1e-15, 1e200])
def test_kkt_residual_of_the_power_step_vanishes(c):
    x = mpmath.mpf(optimal_snr(c))
    with mpmath.workdps(400):
        residual = (1 + x) * mpmath.log(1 + x) - x - c
    assert abs(residual) < 1e-13 * c


@pytest.mark.parametrize("c", [1e-4, 0.01, 0.5, 1.0, 3.0, 100.0, 1e5])
def test_closed_form_agrees_with_the_bisection_of_lemma_6(c):
    assert_allclose(optimal_snr(c), snr_by_bisection(c), rtol=1e-9)


def test_limits_of_the_closed_form():
    assert optimal_snr(0.0) == 0.0
    assert optimal_snr(math.inf) >= 1e299
    assert energy_factor(0.0) == 1.0
    assert delay_factor(0.0) == math.inf


@pytest.mark.parametrize("seed", range(10))
def test_common_snr_equals_the_literal_straggler_loop_of_lemma_6(seed):
    problem = paper_problem(seed, num_devices=8, num_blocks=4, energy_weight=0.3, delay_weight=2.0)
    found = allocate(problem)
    pairs = [(int(i), int(found.block_of_device[i])) for i in found.selected]
    literal = powers_by_stragglers(problem, pairs)
    assert_allclose(found.transmit_power_w[found.selected], [literal[i] for i, _ in pairs], rtol=1e-8)


def test_no_other_powers_on_a_grid_are_better():
    problem = paper_problem(5, num_devices=6, num_blocks=2)
    found = allocate(problem)
    pairs = [(int(i), int(found.block_of_device[i])) for i in found.selected]
    assert len(pairs) == 2
    best = upload_value(problem, pairs, {i: found.transmit_power_w[i] for i, _ in pairs})
    grid = np.linspace(0.002, 1, 200)
    for a in grid:
        for b in grid:
            power = dict(zip((i for i, _ in pairs), (a, b), strict=True))
            power = {i: share * problem.max_power_w[i] for i, share in power.items()}
            assert upload_value(problem, pairs, power) <= best + 1e-9


def test_snr_range_binds_exactly_where_the_derivative_says():
    keywords = {"delay_weight": 1.0, "nat_delay_s": 1.0}
    wished = optimal_snr(0.5)
    assert best_common_snr(2.0, **keywords, smallest=0.0, largest=10.0) == wished
    assert best_common_snr(2.0, **keywords, smallest=0.0, largest=0.5 * wished) == 0.5 * wished
    assert best_common_snr(2.0, **keywords, smallest=2 * wished, largest=10.0) == 2 * wished
    assert best_common_snr(0.0, **keywords, smallest=0.0, largest=10.0) == 10.0  # free energy


def test_energy_factor_is_inverted_over_many_decades():
    snr = 10.0 ** np.linspace(-9, 200, 500)
    factor = np.array([energy_factor(x) for x in snr])
    # Near 1 the factor itself carries few digits of x: allow for the rounding of its distance from 1.
    tolerance = 1e-12 + 4e-16 / (factor - 1)
    assert (np.abs(snr_of_energy_factor(factor) / snr - 1) < tolerance).all()
    np.testing.assert_array_equal(snr_of_energy_factor(np.array([0.0, 0.5, 1.0])), 0.0)


def test_snr_of_delay_inverts_the_rate():
    assert snr_of_delay(1.0, nat_delay_s=math.log(2)) == pytest.approx(1.0)
    assert snr_of_delay(1e-9, nat_delay_s=1.0) == math.inf


def test_many_snrs_at_once_are_those_of_the_closed_form():
    c = np.concatenate([[0.0], 10.0 ** np.linspace(-20, 200, 600)])
    expected = np.array([optimal_snr(float(value)) for value in c])
    assert_allclose(optimal_snrs(c), expected, rtol=1e-6)  # a level maximum needs no more digits
    assert optimal_snrs(np.array([np.inf]))[0] >= 1e297


@pytest.mark.parametrize("nats", [1e-12, 1e-6, 1e-3, 0.1, 0.299999, 0.300001, 1.0, 30.0])
def test_the_left_side_of_lemma_6_does_not_cancel(nats):
    with mpmath.workdps(60):
        exact = (mpmath.mpf(nats) - 1) * mpmath.exp(nats) + 1
    assert float(abs(steepness(nats) / exact - 1)) < 1e-14


@pytest.mark.parametrize("ratio", [1e-8, 1e-3, 0.04, 0.3, 1.0, 8.0, 1e3, 1e9])
@pytest.mark.parametrize("share", [1e-3, 0.9, 1.0 - 1e-6, 1.0, 1.0 + 1e-6, 1.1, 1e3])
def test_a_limit_binds_exactly_where_the_wish_lies_beyond_it(ratio, share):
    wished = optimal_snr(ratio)
    found = best_common_snr(2.0, delay_weight=ratio, nat_delay_s=2.0, smallest=0.0, largest=share * wished)
    assert_allclose(found, min(share, 1.0) * wished, rtol=1e-9)
    floor = 2.0 * share * wished
    assert best_common_snr(2.0, delay_weight=ratio, nat_delay_s=2.0, smallest=floor, largest=floor) == floor


@pytest.mark.parametrize("snr", [1e-300, 1e-20, 1e-16, 1e-9, 1e-3, 0.1, 1.0, 30.0, 1e20, 1e200])
def test_delay_and_energy_are_exact_at_any_snr(snr):
    nats = mpmath.log1p(mpmath.mpf(snr))
    assert delay_factor(snr) == pytest.approx(float(1 / nats), rel=5e-16)
    assert energy_factor(snr) == pytest.approx(float(snr / nats), rel=5e-16)
    assert snr_of_delay(1.0, nat_delay_s=float(nats)) == pytest.approx(snr, rel=1e-12)
    if snr < 1e100:  # steep by more than a float holds
        steep = (1 + mpmath.mpf(snr)) * nats - snr
        assert steepness(float(nats)) == pytest.approx(float(steep), rel=1e-12)
        assert optimal_snr(float(steep)) == pytest.approx(snr, rel=1e-12) or snr < 1e-150


@pytest.mark.parametrize("exponent", [-300, -200, -100, -40, -32, -24, -16, -11, -10, -9, -4, 0, 6])
def test_many_best_snrs_are_exact_also_where_they_are_tiny(exponent):
    c = 10.0**exponent
    one = optimal_snr(c)
    assert optimal_snrs(np.array([c, 1.0]))[0] == pytest.approx(one, rel=1e-7)  # it need not be closer
    with mpmath.workdps(400):
        x = mpmath.mpf(one)
        assert float(((1 + x) * mpmath.log1p(x) - x) / mpmath.mpf(c)) == pytest.approx(1.0, rel=1e-12)
