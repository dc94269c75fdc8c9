from __future__ import annotations

import numpy as np
import pytest

from fedwave.allocation import account, allocate
from tests.allocation.allocation_problems import paper_problem


def test_powers_are_uniform_on_the_feasible_region():
    problem = paper_problem(1, num_devices=20, max_delay_s=100.0, max_power_w=1.0)
    generator = np.random.default_rng(2)
    shares = np.concatenate([allocate(problem, "random", rng=generator).transmit_power_w for _ in range(200)])
    assert (shares > 0).all()
    assert shares.mean() == pytest.approx(0.5, abs=0.02)
    assert np.quantile(shares, 0.25) == pytest.approx(0.25, abs=0.03)


def test_a_deadline_cuts_the_region_from_below():
    # One bit per hertz and second at SNR 1: a deadline of 1 s asks for at least 1 W of the 2 W there are.
    problem = paper_problem(
        0,
        num_devices=1,
        num_blocks=1,
        channel_gain=[1.0],
        interference_w=[0.0],
        max_power_w=2.0,
        max_delay_s=1.0,
    )
    generator = np.random.default_rng(3)
    found = [allocate(problem, "random", rng=generator) for _ in range(400)]
    power = np.array([one.transmit_power_w[0] for one in found])
    assert power.min() >= 1.0
    assert power.max() <= 2.0
    assert power.mean() == pytest.approx(1.5, abs=5 / np.sqrt(12 * 400))  # five standard errors
    assert max(account(problem, one).upload_delay_s[0] for one in found) <= 1.0
