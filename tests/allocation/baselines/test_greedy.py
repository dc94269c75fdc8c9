from __future__ import annotations

import numpy as np
import pytest

from fedwave.allocation import allocate
from fedwave.allocation.computing.cpu_frequency import selfish_cpu_frequencies
from tests.allocation.allocation_problems import paper_problem


def test_power_solves_eq_56_as_corrected():
    problem = paper_problem(0, energy_weight=2.0, delay_weight=0.5)
    found = allocate(problem, "greedy", rng=np.random.default_rng(0))
    for i in found.selected:
        m = found.block_of_device[i]
        noise = problem.interference_w[m] + 1.0
        grid = np.linspace(1e-4, 1, 20_001) * problem.max_power_w[i]

        def cost(p, i=i, noise=noise):
            return (2.0 * p + 0.5) / np.log2(1 + problem.channel_gain[i] * p / noise)

        assert cost(found.transmit_power_w[i]) <= cost(grid).min() * (1 + 1e-12)


def test_each_device_pays_its_own_price():
    price = 10.0 ** np.random.default_rng(1).uniform(-1, 1, 100)
    problem = paper_problem(0, energy_weight=price, delay_weight=0.5)
    found = allocate(problem, "greedy", rng=np.random.default_rng(0))
    for i in found.selected:
        alone = paper_problem(0, energy_weight=float(price[i]), delay_weight=0.5)
        other = allocate(alone, "greedy", rng=np.random.default_rng(0))  # the same blocks
        assert found.transmit_power_w[i] == other.transmit_power_w[i]
        assert found.cpu_frequency_hz[i] == other.cpu_frequency_hz[i]


def test_cpu_frequencies_are_those_of_eq_55():
    problem = paper_problem(0)
    found = allocate(problem, "greedy", rng=np.random.default_rng(0))
    np.testing.assert_array_equal(found.cpu_frequency_hz, selfish_cpu_frequencies(problem).cpu_frequency_hz)


def test_blocks_are_drawn_uniformly():
    problem = paper_problem(1, num_devices=1, num_blocks=4)
    generator = np.random.default_rng(5)
    counts = np.bincount(
        [allocate(problem, "greedy", rng=generator).block_of_device[0] for _ in range(800)], minlength=4
    )
    assert np.abs(counts - 200).max() < 5 * np.sqrt(800 * 0.25 * 0.75)  # five standard deviations


@pytest.mark.parametrize("method", ["greedy", "random"])
def test_several_devices_share_the_blocks_without_sharing_one(method):
    generator = np.random.default_rng(6)
    pairs = set()
    for _ in range(200):
        found = allocate(paper_problem(1, num_devices=3, num_blocks=3), method, rng=generator)
        assert sorted(found.block_of_device) == [0, 1, 2]
        pairs.add(tuple(found.block_of_device))
    assert len(pairs) == 6  # every permutation comes up
