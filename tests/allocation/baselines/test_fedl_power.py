from __future__ import annotations

import numpy as np
import pytest
from scipy.special import lambertw

from fedwave.allocation import account, allocate
from fedwave.allocation.computing.cpu_frequency import solve_cpu_frequencies
from tests.allocation.allocation_oracles import assignments
from tests.allocation.allocation_problems import paper_problem


def test_it_is_sp1_and_the_lambert_formula_of_each_device():
    problem = paper_problem(3, max_power_w=1e3, delay_weight=2.0)
    found = allocate(problem, "fedl-power")
    np.testing.assert_array_equal(found.cpu_frequency_hz, solve_cpu_frequencies(problem).cpu_frequency_hz)
    noise = problem.interference_w + 1.0
    for i in found.selected:
        gain_to_noise = problem.channel_gain[i] / noise[found.block_of_device[i]]
        # FEDL's tau: S ln2 / (B (1 + W((kappa h / N0 - 1) / e))), kappa = eta_2 / eta_1.
        delay = np.log(2) / (1 + lambertw((2.0 * gain_to_noise - 1) / np.e).real)
        assert account(problem, found).upload_delay_s[i] == pytest.approx(delay)


@pytest.mark.parametrize("seed", range(12))
def test_its_blocks_minimise_the_sum_of_its_costs(seed):
    gain = np.random.default_rng(seed).uniform(0.05, 2, (3, 3))
    weights = {"energy_weight": 3.0, "delay_weight": 0.5}
    problem = paper_problem(seed, num_devices=3, num_blocks=3, channel_gain=gain, max_power_w=2.0, **weights)
    entry = account(problem, allocate(problem, "fedl-power"))
    ours = float((3.0 * entry.upload_energy_j + 0.5 * entry.upload_delay_s).sum())

    def cost(pairs):
        total = 0.0
        for i, m in pairs:
            p = np.linspace(1e-4, 1, 20_001) * problem.max_power_w[i]
            noise = problem.interference_w[m] + 1.0
            total += ((3.0 * p + 0.5) / np.log2(1 + gain[i, m] * p / noise)).min()
        return total

    best = min(cost(pairs) for pairs in assignments(3, 3) if len(pairs) == 3)
    assert ours == pytest.approx(best, rel=1e-6)


def test_a_block_that_a_device_cannot_use_is_matched_last():
    # Each device has one block that it hears; only one matching serves all three.
    gain = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.01, 0.0, 0.0]])
    problem = paper_problem(0, num_devices=3, num_blocks=3, channel_gain=gain, max_power_w=1.0)
    assert allocate(problem, "fedl-power").block_of_device.tolist() == [1, 2, 0]
