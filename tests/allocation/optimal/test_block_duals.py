from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from fedwave.allocation.optimal.block_duals import block_duals, warm_started_matching
from fedwave.allocation.uploads.assignment import best_matching
from fedwave.allocation.uploads.pairs import all_pairs
from fedwave.allocation.uploads.power import energy_factor
from tests.allocation.optimal.test_candidates import crowd
from tests.allocation.optimal.test_column_generation import hard_families


@pytest.mark.parametrize("seed", range(20))
def test_duals_prove_that_a_matching_is_the_best(seed):
    rng = np.random.default_rng(seed)
    problem = crowd(rng, max_devices=40, max_blocks=7)
    table = all_pairs(problem, may_upload=problem.contribution > 0)
    if table.device.size == 0:
        return
    for snr in (0.01, 0.1, 0.4):
        factor = energy_factor(snr)
        matching = best_matching(table, energy_factor=factor, smallest_cap=snr)
        duals = block_duals(table, matching)
        weight = np.where(
            table.snr_cap >= snr, table.contribution - np.nan_to_num(table.unit_cost) * factor, -1e300
        )
        profit = np.maximum((weight - duals[:, None]).max(axis=0), 0.0)
        assert (duals >= 0.0).all()
        assert_allclose(duals.sum() + profit.sum(), matching.value(factor), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("spoilt", [0.0, 0.3, 3.0])
def test_a_matching_started_from_any_duals_is_the_best_one(seed, spoilt):
    rng = np.random.default_rng(seed)
    _, problem = hard_families(200, 6, seed)[seed % 6]
    table = all_pairs(problem)
    factor, snr = energy_factor(0.1), 0.05
    plain = best_matching(table, energy_factor=factor, smallest_cap=snr)
    start = block_duals(table, plain) * rng.uniform(1.0 - min(spoilt, 1.0), 1.0 + spoilt, 6)
    found, duals = warm_started_matching(table, energy_factor=factor, smallest_cap=snr, duals=start)
    assert_allclose(found.value(factor), plain.value(factor), rtol=1e-12)
    assert_allclose(duals, block_duals(table, found), rtol=1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_duals_that_suit_lead_straight_to_the_matching(seed, monkeypatch):
    _, problem = hard_families(200, 6, seed)[seed]
    table = all_pairs(problem)
    factor, snr = energy_factor(0.1), 0.05
    plain = best_matching(table, energy_factor=factor, smallest_cap=snr)
    duals = block_duals(table, plain)
    monkeypatch.setattr("fedwave.allocation.optimal.block_duals.assign_blocks", None)  # from scratch
    found, _ = warm_started_matching(table, energy_factor=factor, smallest_cap=snr, duals=duals)
    assert_allclose(found.value(factor), plain.value(factor), rtol=1e-12)
