from __future__ import annotations

import math
from dataclasses import fields, replace

import numpy as np
import pytest

from fedwave.allocation import METHODS, account, allocate, describe, objective_terms, total_cost
from fedwave.errors import ProblemError
from fedwave.wireless.rate import RateModel
from tests.allocation.allocation_problems import paper_problem, small_problem


@pytest.mark.parametrize("method", METHODS)
def test_the_account_adds_up_to_the_objective(method):
    problem = paper_problem(0)
    found = allocate(problem, method, rng=np.random.default_rng(0))
    entry = account(problem, found)
    assert entry.compute_energy_j.sum() + entry.upload_energy_j.sum() == pytest.approx(found.energy_j)
    assert entry.compute_delay_s.max() == pytest.approx(found.compute_delay_s)
    assert entry.upload_delay_s.max(initial=0.0) == pytest.approx(found.upload_delay_s)
    assert problem.contribution[entry.is_selected].sum() == pytest.approx(found.contribution)
    expected = found.contribution - found.energy_j - found.delay_s
    assert found.objective == pytest.approx(expected)
    assert found.delay_s == found.compute_delay_s + found.upload_delay_s


def test_the_total_cost_by_hand():
    # At gain 1, device 0 on block 1 (noise 2 W) at 2 W and device 2 on block 0 (noise 1 W) at 1 W have an
    # SNR of 1: one second, so 2 J and 1 J. The CPUs take 1 / 1, 2 / 0.5 and 0.5 / 0.5 seconds.
    problem = small_problem(channel_gain=1.0, max_power_w=2.0)
    found = replace(
        allocate(problem),
        block_of_device=np.array([1, -1, 0]),
        transmit_power_w=np.array([2.0, 0.0, 1.0]),
        cpu_frequency_hz=np.array([1.0, 0.5, 0.5]),
    )
    entry = account(problem, found)
    assert entry.upload_delay_s.tolist() == [1.0, 0.0, 1.0]
    assert entry.upload_energy_j.tolist() == [2.0, 0.0, 1.0]
    assert entry.compute_delay_s.tolist() == [1.0, 4.0, 1.0]
    # iota / 2 times cycles times frequency squared
    assert entry.compute_energy_j.tolist() == [0.25, 0.25, 0.015625]
    # Both have an SNR of 1, so 0 dB and log2(2) = 1 bit/s; device 1 does not upload.
    assert np.array_equal(entry.sinr, [1.0, np.nan, 1.0], equal_nan=True)
    assert np.array_equal(entry.sinr_db, [0.0, np.nan, 0.0], equal_nan=True)
    assert np.array_equal(entry.rate_bps, [1.0, np.nan, 1.0], equal_nan=True)
    assert np.array_equal(entry.margin_db, [np.inf, np.nan, np.inf], equal_nan=True)
    assert entry.energy_j.tolist() == [2.25, 0.25, 1.015625]
    assert total_cost(problem, found) == (5.0 + 4.0) - 0.25 * (3.0 + 0.515625) - 0.5 * (4.0 + 1.0)


def test_a_selected_device_without_power_takes_forever_and_no_energy():
    found = replace(
        allocate(small_problem()),
        block_of_device=np.array([1, -1, 0]),
        transmit_power_w=np.array([0.0, 0.0, 1.0]),
    )
    entry = account(small_problem(), found)
    assert entry.upload_delay_s[0] == np.inf
    assert entry.upload_energy_j[0] == 0.0
    assert total_cost(small_problem(), found) == -np.inf


def test_energy_counts_the_computing_of_all_devices():
    found = allocate(small_problem(contribution=[-1.0, -1.0, -1.0]))
    assert found.num_selected == 0
    assert found.energy_j > 0


def test_gap_is_relative_to_the_objective_and_infinite_if_nothing_is_proven():
    assert allocate(small_problem(), "ives").gap == np.inf
    found = allocate(small_problem())
    assert replace(found, objective=-4.0, upper_bound=-3.0).gap == 0.25
    assert replace(found, objective=0.0, upper_bound=1.0).gap == np.inf
    assert replace(found, objective=2.0, upper_bound=1.0).gap == 0.0  # below it by rounding


def test_gap_of_a_proven_zero_is_zero():
    found = allocate(small_problem(contribution=[-1.0, -1.0, -1.0], workload_cycles=0.0))
    assert (found.objective, found.upper_bound, found.gap) == (0.0, 0.0, 0.0)


def test_devices_are_listed_by_their_blocks():
    found = allocate(small_problem())
    assert found.block_of_device.tolist() == [1, -1, 0]
    assert list(found.device_of_block.items()) == [(0, 2), (1, 0)]


@pytest.mark.parametrize("function", [account, total_cost, describe, objective_terms])
@pytest.mark.parametrize(
    ("problem", "message"),
    [
        (paper_problem(0, num_devices=4), r"block_of_device has the shape \(3,\), but there are 4 devices"),
        (small_problem(interference_w=[0.0]), r"device 0 has block 1, outside -1..0"),
    ],
)
def test_an_allocation_of_another_problem_is_refused_in_one_line(function, problem, message):
    found = allocate(small_problem())
    with pytest.raises(ProblemError, match="The allocation is of another problem: " + message) as caught:
        function(problem, found)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("values", "required"),
    [
        ({"min_snr": 0.1}, 0.1),
        ({"rate": RateModel(min_snr=0.25)}, 0.25),
        ({"min_snr": 0.1, "rate": RateModel(min_snr=0.025)}, 0.1),
    ],
)
def test_an_allocation_carries_its_account_with_the_margin_in_decibels(values, required):
    problem = paper_problem(3, **values)
    found = allocate(problem)
    assert found.account is not None
    again = account(problem, found)
    for field in fields(again):
        assert np.array_equal(getattr(found.account, field.name), getattr(again, field.name), equal_nan=True)
    device = found.selected
    assert device.size
    for i in device:
        noise_w = problem.interference_w[found.block_of_device[i]] + 1.0  # B = N0 = 1
        snr = found.transmit_power_w[i] * problem.channel_gain[i] / noise_w
        assert again.sinr_db[i] == pytest.approx(10 * math.log10(snr))
        assert again.margin_db[i] == pytest.approx(10 * math.log10(snr / required))
        assert again.rate_bps[i] == pytest.approx(math.log2(1 + snr))
        assert again.upload_delay_s[i] == pytest.approx(1 / math.log2(1 + snr))
    idle = np.setdiff1d(np.arange(problem.num_devices), device)
    assert np.isnan([again.sinr_db[idle], again.margin_db[idle], again.rate_bps[idle]]).all()
