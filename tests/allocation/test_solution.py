from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fedwave.allocation import METHODS, account, allocate, describe, objective_terms, total_cost
from fedwave.errors import ProblemError
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
    # Device 0 on block 1 (noise 2 W) at 2 W: SNR 1, 1 s, 2 J. CPUs: 1 / 1, 2 / 0.5 and 0.5 / 0.5 s.
    problem = small_problem(max_power_w=2.0)
    found = replace(
        allocate(problem),
        block_of_device=np.array([1, -1, -1]),
        transmit_power_w=np.array([2.0, 0.0, 0.0]),
        cpu_frequency_hz=np.array([1.0, 0.5, 0.5]),
    )
    entry = account(problem, found)
    assert entry.upload_delay_s.tolist() == [1.0, 0.0, 0.0]
    assert entry.upload_energy_j.tolist() == [2.0, 0.0, 0.0]
    assert entry.compute_delay_s.tolist() == [1.0, 4.0, 1.0]
    # iota / 2 times cycles times frequency squared
    assert entry.compute_energy_j.tolist() == [0.25, 0.25, 0.015625]
    assert total_cost(problem, found) == 5.0 - 0.25 * (2.0 + 0.515625) - 0.5 * (4.0 + 1.0)


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


def test_gap_of_an_unproven_answer_is_infinite():
    assert allocate(small_problem(), "ives").gap == np.inf


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
