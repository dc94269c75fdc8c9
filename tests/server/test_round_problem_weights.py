"""The advice on weights: in every cell uploads go on, and costs still decide who uploads."""

from __future__ import annotations

import numpy as np
import pytest

from fedwave.allocation import allocate
from fedwave.server.round_problem import problem_of_cell
from fedwave.wireless.describe.cell import describe_cell
from fedwave.wireless.settings.load import load_cell
from fedwave.wireless.settings.presets import CELL_PRESETS


@pytest.mark.parametrize("preset", CELL_PRESETS)
def test_uploads_go_on_and_costs_count(preset):
    cell = load_cell(preset, num_devices=60, seed=1)
    description = describe_cell(cell)
    weights = description.suggested_weights
    worth = np.random.default_rng(0).uniform(0.0, 2.0, 60)  # normalised: mean |u| = 1
    allocation = allocate(
        problem_of_cell(cell, worth, model_bits=description.budget.model_bits, **weights), "optimal"
    )
    assert allocation.num_selected >= cell.num_blocks / 2
    if cell.config.normalised:
        return  # there computing on the slowest processor costs more than any upload
    cost = allocation.contribution - allocation.objective
    assert 0.02 * allocation.contribution < cost < 0.8 * allocation.contribution


def test_the_median_upload_costs_half_of_what_it_is_worth():
    description = describe_cell(load_cell("umi-3.5ghz", num_devices=60, seed=1))
    median = description.budget.rows[1]
    weights = description.suggested_weights
    assert weights["energy_weight"] * median.upload_energy_j == pytest.approx(0.25)
    assert weights["delay_weight"] * median.upload_delay_s == pytest.approx(0.25 * 20)
    assert description.as_json()["suggested_weights"] == weights
