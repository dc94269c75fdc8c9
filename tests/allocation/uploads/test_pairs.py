from __future__ import annotations

import math

import numpy as np
import pytest

from fedwave.allocation.uploads.power import energy_factor
from fedwave.allocation.uploads.snr_range import snr_floor
from tests.allocation.uploads.test_faster_uploads import choosing_problem, useful_pairs


@pytest.mark.parametrize("seed", range(40))
def test_tangents_bound_every_worth_and_touch_it(seed):
    problem = choosing_problem(seed)
    rng = np.random.default_rng(seed)
    for table, pair, row, column in useful_pairs(problem):
        cap = float(table.snr_cap[row, column])
        low = max(snr_floor(problem), 1e-4 * cap)
        snr = np.geomspace(low, cap, 60)
        true = pair.best(snr)
        touch = float(np.exp(rng.uniform(math.log(low), math.log(2 * cap))))
        lines = table.tangent(min(touch, problem.rate.max_snr))
        factor = np.array([energy_factor(float(x)) for x in snr])
        line = lines.contribution[row, column] - lines.unit_cost[row, column] * factor
        scale = 1e-9 * (problem.contribution.max() + 1)
        assert (np.maximum(line, 0) >= np.maximum(true, 0) - scale).all()
        exact = table.tangent(float(snr[30]))
        there = exact.contribution[row, column] - exact.unit_cost[row, column] * factor[30]
        assert max(there, 0) == pytest.approx(max(true[30], 0), abs=scale)
