from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fedwave.allocation.uploads.delay_cost import DelayCost
from fedwave.allocation.uploads.pairs import all_pairs
from fedwave.allocation.uploads.snr_range import snr_floor
from tests.allocation.link_oracle import Pair
from tests.allocation.uploads.test_faster_uploads import choosing_problem


@pytest.mark.parametrize("seed", range(40))
def test_the_value_of_several_pairs_at_a_common_snr_and_its_best(seed):
    problem = choosing_problem(seed)
    if seed % 3 == 0:
        problem = replace(problem, max_round_delay_s=3.0 + problem.fastest_compute_s)
    delay = DelayCost.of(problem)
    table = all_pairs(problem)
    floor = max(snr_floor(problem), 1e-3)
    columns = np.flatnonzero((table.snr_cap > floor).all(axis=0))[: len(table.block)]
    if columns.size == 0:
        return
    rows = np.arange(columns.size)
    common = table.common_snr(rows, columns)
    pairs = [
        Pair(problem, int(table.device[0, column]), int(table.block[row]))
        for row, column in zip(rows, columns, strict=True)
    ]
    largest = float(table.snr_cap[rows, columns].min())
    snr = np.geomspace(floor, largest, 400)
    value = np.array([common.value(float(x)) for x in snr])
    by_hand = np.sum([pair.best(snr) for pair in pairs], axis=0)
    scale = problem.contribution.max() + 1
    np.testing.assert_allclose(value, by_hand, atol=1e-9 * scale, rtol=1e-9)
    best = common.best_snr(delay, smallest=floor, largest=largest)
    assert floor <= best <= largest
    total = [v - delay.at(float(x)) for v, x in zip(value, snr, strict=True)]
    assert common.value(best) - delay.at(best) >= max(total) - 1e-12 * scale
