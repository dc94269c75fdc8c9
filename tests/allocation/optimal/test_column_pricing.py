from __future__ import annotations

import numpy as np
import pytest

from fedwave.allocation.optimal.block_duals import block_duals
from fedwave.allocation.optimal.candidates import useful_devices
from fedwave.allocation.optimal.column_pricing import BlockDuals, ColumnPricing
from fedwave.allocation.uploads.assignment import best_matching
from fedwave.allocation.uploads.pairs import pair_table
from fedwave.allocation.uploads.power import energy_factor
from fedwave.allocation.uploads.snr_range import snr_cap
from tests.allocation.optimal.test_column_generation import hard_families


@pytest.mark.parametrize("index", range(6))
@pytest.mark.parametrize("snr", [0.02, 0.1, 0.3])
def test_columns_outside_make_what_the_definition_says(index, snr):
    """The oracle looks at every device on every block, with exact limits."""
    _, problem = hard_families(400, 7, index)[index]
    inside, factor = np.arange(0, 400, 9), energy_factor(snr)
    table = pair_table(problem, inside[None, :])
    matching = best_matching(table, energy_factor=factor, smallest_cap=snr)
    duals = np.empty(7)
    duals[table.block] = block_duals(table, matching)
    pricing = ColumnPricing(problem, useful_devices(problem, None))
    pricing.take_inside(inside)
    (found,) = pricing.profits([BlockDuals(duals, factor, snr)])
    expected = {}
    unit = problem.energy_weight * problem.nat_delay_s
    for device in np.setdiff1d(pricing.device, inside):
        best = 0.0
        for block in range(7):
            gain = problem.gain_of(np.array(device), np.array(block))
            if snr_cap(problem, np.array([device]), np.array([block]))[0] >= snr:
                worth = problem.contribution[device] - unit * problem.block_noise_w[block] / gain * factor
                best = max(best, float(worth - duals[block]))
        if best > 0.0:
            expected[int(device)] = best
    got = dict(zip(found.device.tolist(), found.profit.tolist(), strict=True))
    largest = sorted(expected.values())[-7:]
    assert found.total >= sum(largest) * (1 - 1e-12)
    for device, profit in got.items():
        assert expected[device] == pytest.approx(profit, rel=1e-9)
    if len(got) <= 28:  # all were looked at
        assert set(got) == set(expected)
        assert found.total == pytest.approx(sum(largest), rel=1e-9, abs=1e-12)
