from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fedwave.allocation.optimal.stand_ins import near_together, stand_ins
from fedwave.allocation.uploads.pairs import pair_table
from tests.allocation.allocation_problems import link_problem
from tests.allocation.link_oracle import Pair
from tests.allocation.optimal.test_column_generation import hard_families


def shared_problem(seed: int, num_devices: int = 14):
    """Return devices that differ in everything, with one gain each."""
    rng = np.random.default_rng(seed)
    features = ["errors", "energy", "own_delay", "own_circuit", "prices"]
    while True:
        problem = link_problem(rng, features, max_devices=num_devices, max_blocks=2)
        if not problem.is_frequency_selective and problem.num_devices > 3:
            return problem


@pytest.mark.parametrize("seed", range(30))
def test_a_stand_in_is_worth_at_least_what_each_of_its_group_is(seed):
    """The oracle takes a device's best worth from an SNR on straight from the definitions."""
    problem = shared_problem(seed)
    device = near_together(problem, np.arange(problem.num_devices), 4)
    better, some = stand_ins(problem, device, 4)
    table = pair_table(better, some[None, :])
    tangents = [table.tangent(touching) for touching in (0.02, 0.2, 0.9, 3.0)]
    grid = np.geomspace(1e-3, 10, 60)
    factor = grid / np.log1p(grid)
    for row, block in enumerate(table.block):
        for place, member in enumerate(device):
            column = place // 4
            worth = Pair(problem, int(member), int(block), num_points=400).best(grid)
            is_worth = worth > 1e-9
            assert (table.snr_cap[row, column] >= grid[is_worth] * (1 - 1e-9)).all()
            for lines in tangents:
                line = lines.contribution[row, column] - lines.unit_cost[row, column] * factor
                assert (line >= worth - 1e-9)[is_worth].all()


def test_a_group_of_one_is_the_device_itself():
    problem = shared_problem(3)
    device = np.arange(problem.num_devices)
    better, some = stand_ins(problem, device, 1)
    assert some.tolist() == device.tolist()
    own, found = pair_table(problem, device[None, :]), pair_table(better, device[None, :])
    assert found.unit_cost.tolist() == own.unit_cost.tolist()
    assert found.faster.worth.tolist() == own.faster.worth.tolist()


def test_every_device_is_in_one_group_and_groups_are_alike():
    _, problem = hard_families(1000, 5, 0)[1]
    device = np.arange(0, 1000, 3)
    order = near_together(problem, device, 8)
    assert np.sort(order).tolist() == device.tolist()
    spread = [np.ptp(problem.contribution[order[k : k + 8]]) for k in range(0, order.size, 8)]
    powers = [np.ptp(problem.max_power_w[order[k : k + 8]]) for k in range(0, order.size, 8)]
    # A group is a box of a seventh or so of both ranges; at random it would span most of them.
    assert np.mean(spread) < 0.3 * np.ptp(problem.contribution)
    assert np.mean(powers) < 0.3 * np.ptp(problem.max_power_w)


def test_devices_that_are_all_alike_stay_in_order():
    _, problem = hard_families(50, 3, 0)[0]
    alike = replace(problem, contribution=np.full(50, 2.0), channel_gain=np.full(50, 0.5), max_power_w=1.0)
    assert near_together(alike, np.arange(50), 4).tolist() == list(range(50))
