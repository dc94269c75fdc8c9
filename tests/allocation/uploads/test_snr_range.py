from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

from fedwave.allocation import Status, account, allocate, violations
from fedwave.allocation.uploads.power import delay_factor, energy_factor
from fedwave.allocation.uploads.snr_range import (
    energy_at,
    least_affordable_snr,
    snr_cap,
    snr_floor,
    snr_of_energy_limit,
    thrifty_snr,
    upload_deadline_s,
    watts_per_snr,
)
from fedwave.wireless.rate import RadioPower, RateModel
from tests.allocation.allocation_problems import link_problem, paper_problem, problems, small_problem


def test_a_device_exactly_at_the_deadline_may_upload():
    # Device 0 on block 0 at full power: SNR 1, one bit per second and hertz, one second, one joule.
    found = allocate(small_problem(max_delay_s=1.0, max_energy_j=1.0))
    assert found.selected.tolist() == [0]
    assert found.upload_delay_s == 1.0
    assert violations(small_problem(max_delay_s=1.0, max_energy_j=1.0), found) == ()


@pytest.mark.parametrize("seed", range(40))
def test_limits_hold_exactly_not_almost(seed):
    rng = np.random.default_rng(seed)
    limits = {"max_delay_s": rng.uniform(2, 12), "max_energy_j": rng.uniform(0.8, 3, 100)}
    if seed % 3 == 0:
        limits["max_energy_j"] = None
    if seed % 3 == 1:
        limits["max_delay_s"] = None
    problem = paper_problem(seed, contribution=rng.exponential(100, 100), **limits)
    for method in ("optimal", "ives", "greedy", "random", "chen2020", "fedl-power"):
        found = allocate(problem, method, rng=rng)
        entry = account(problem, found)
        if problem.max_delay_s is not None:
            assert entry.upload_delay_s.max() <= problem.max_delay_s
        if problem.max_energy_j is not None:
            assert (entry.upload_energy_j <= problem.max_energy_j).all()
        assert (found.transmit_power_w <= problem.max_power_w).all()


def test_a_tighter_limit_never_raises_the_optimum():
    free = allocate(paper_problem(4)).objective
    for limits in ({"max_delay_s": 4.0}, {"max_energy_j": 1.0}):
        found = allocate(paper_problem(4, **limits))
        assert found.status is Status.OPTIMAL
        assert found.objective < free
    slack = allocate(paper_problem(4, max_delay_s=1e6, max_energy_j=1e6)).objective
    assert slack == pytest.approx(free, rel=1e-12)


@settings(max_examples=200, deadline=None)
@given(problems())
def test_every_pair_at_its_cap_keeps_every_limit(problem):
    shape = (problem.num_devices, problem.num_blocks)
    device, block = (index.ravel() for index in np.indices(shape))
    cap, watts = snr_cap(problem, device, block), watts_per_snr(problem, device, block)
    for i, x, a in zip(device, cap, watts, strict=True):
        if x == 0 or x >= 1e300:
            continue
        slack = 1 + 1e-9
        assert x * a <= problem.max_power_w[i] * slack
        if problem.max_delay_s is not None:
            assert problem.nat_delay_s * delay_factor(x) <= problem.max_delay_s * slack
        if problem.max_energy_j is not None:
            assert problem.nat_delay_s * a * energy_factor(x) <= problem.max_energy_j[i] * slack


def test_an_infinite_energy_limit_is_no_limit():
    limits = np.array([np.inf, 1.0, np.inf])
    found = allocate(small_problem(max_energy_j=limits))
    assert found.status is Status.OPTIMAL
    free = allocate(small_problem(max_energy_j=np.inf))
    assert free.objective == allocate(small_problem()).objective


def drawn_pairs(seed, **terms):
    """Return a problem with circuit power and a modem, and all its pairs."""
    rng = np.random.default_rng(seed)
    problem = link_problem(
        rng, ["circuit", "energy", *terms.pop("features", [])], max_devices=6, max_blocks=4
    )
    problem = replace(problem, **terms)
    device, block = (index.ravel() for index in np.indices((problem.num_devices, problem.num_blocks)))
    return problem, device, block


@pytest.mark.parametrize("features", [[], ["rate"]])
@pytest.mark.parametrize("seed", range(30))
def test_energy_limits_with_circuit_power_allow_a_range_of_snrs(seed, features):
    problem, device, block = drawn_pairs(seed, features=features)
    watts = watts_per_snr(problem, device, block)
    most, least = snr_of_energy_limit(problem, device, block), least_affordable_snr(problem, device, block)
    thrifty = thrifty_snr(problem, device, block)
    limit = problem.energy_limit_of(device)
    grid = np.geomspace(1e-4, 1e4, 2000)
    for k in range(device.size):
        fits = energy_at(problem, device[k : k + 1], watts[k : k + 1], grid) <= limit[k]
        if not fits.any():
            assert most[k] == 0 or most[k] < 1.02 * least[k]
            continue
        assert most[k] == pytest.approx(grid[fits].max(), rel=0.01)
        assert least[k] == pytest.approx(grid[fits].min(), rel=0.01)
        assert least[k] <= thrifty[k] <= most[k] * (1 + 1e-9)
        assert energy_at(problem, device[k : k + 1], watts[k : k + 1], most[k])[0] <= limit[k] * (1 + 1e-12)


def test_who_cannot_reach_an_affordable_rate_cannot_upload():
    # At full power the SNR is 0.5: 1.71 s at 1.5 W are 2.56 J. Faster would be cheaper, down to e ln 2 J.
    problem = small_problem(max_power_w=0.5, radio=RadioPower(circuit_power_w=1.0), max_energy_j=2.5)
    first = np.array([0])
    assert snr_cap(problem, first, first)[0] == 0.0
    assert snr_cap(replace(problem, max_energy_j=2.57), first, first)[0] == 0.5
    assert snr_cap(replace(problem, max_power_w=0.6), first, first)[0] > 0.5


def test_the_time_for_the_upload_is_what_all_deadlines_leave():
    assert upload_deadline_s(small_problem()) == np.inf
    assert upload_deadline_s(small_problem(max_delay_s=3.0)) == 3.0
    problem = small_problem(max_round_delay_s=5.0, fixed_delay_s=0.5)  # computing takes 2 s at least
    assert upload_deadline_s(problem) == 2.5
    assert upload_deadline_s(replace(problem, max_delay_s=2.0)) == 2.0
    assert upload_deadline_s(problem, share=1.1) == pytest.approx(3.0)
    assert upload_deadline_s(small_problem(max_round_delay_s=1.0)) == -1.0


def test_the_floor_is_the_highest_of_deadline_modem_and_decoder():
    assert snr_floor(small_problem()) == 0.0
    assert snr_floor(small_problem(max_delay_s=1.0)) == pytest.approx(1.0)
    assert snr_floor(small_problem(max_delay_s=1.0, min_snr=3.0)) == 3.0
    assert snr_floor(small_problem(min_snr=3.0, rate=RateModel(min_snr=4.0))) == 4.0
    assert snr_floor(small_problem(max_delay_s=1.0, rate=RateModel(efficiency=0.5))) == pytest.approx(3.0)
    capped = RateModel(max_spectral_efficiency=1.0)
    assert snr_floor(small_problem(min_snr=3.0, rate=capped)) == pytest.approx(1.0)
    assert snr_floor(small_problem(max_round_delay_s=1.0)) == np.inf
