from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fedwave.allocation.optimal import curved_pricing
from fedwave.allocation.optimal.block_duals import block_duals
from fedwave.allocation.optimal.candidates import useful_devices
from fedwave.allocation.optimal.column_pricing import BlockDuals
from fedwave.allocation.optimal.curved_pricing import CurvedPricing
from fedwave.allocation.uploads.assignment import best_matching
from fedwave.allocation.uploads.pairs import pair_table
from fedwave.allocation.uploads.power import energy_factor
from fedwave.wireless.rate import RadioPower
from tests.allocation.link_oracle import Pair
from tests.allocation.optimal.test_column_generation import hard_families

TERMS = {
    "errors": {"packet_error_waterfall": 0.02},
    "circuit": {"radio": RadioPower(amplifier_efficiency=0.3, circuit_power_w=0.01)},
}


def problem_of(index, link, num_devices=400, num_blocks=7):
    _, problem = hard_families(num_devices, num_blocks, index)[index]
    return replace(problem, **TERMS[link])


def duals_at(problem, inside, snr, touching, cap):
    """Return the duals of the best matching of a few devices, on tangents."""
    table = pair_table(problem, inside[None, :]).tangent(touching)
    matching = best_matching(table, energy_factor=energy_factor(snr), smallest_cap=cap)
    duals = np.empty(problem.num_blocks)
    duals[table.block] = block_duals(table, matching)
    return BlockDuals(duals, energy_factor(snr), cap, touching)


def expected_profits(problem, device, duals):
    """Return what each device makes, from the tangents of all its pairs."""
    lines = pair_table(problem, device[None, :]).tangent(duals.touching_snr)
    profit = lines.contribution - lines.unit_cost * duals.energy_factor - duals.value[lines.block][:, None]
    return np.where(lines.snr_cap >= duals.smallest_cap, profit, 0.0).max(axis=0).clip(0.0)


@pytest.mark.parametrize("link", TERMS)
@pytest.mark.parametrize("index", range(6))
@pytest.mark.parametrize("snr", [0.02, 0.1, 0.3])
def test_columns_outside_make_what_their_tangents_say(index, link, snr, monkeypatch):
    monkeypatch.setattr(curved_pricing, "_STAND_IN_PAIRS", 800)  # groups of four, and of 64
    monkeypatch.setattr(curved_pricing, "_CHUNK_PAIRS", 200)
    monkeypatch.setattr(curved_pricing, "_CLASSES", 2)
    problem = problem_of(index, link)
    inside = np.arange(0, 400, 9)
    pricing = CurvedPricing(problem, useful_devices(problem, None))
    pricing.take_inside(inside)
    outside = np.setdiff1d(pricing.device, inside)
    for touching in (0.5 * snr, snr, 2.0 * snr):
        duals = duals_at(problem, inside, snr, touching, 0.8 * snr)
        (found,) = pricing.profits([duals])
        expected = expected_profits(problem, outside, duals)
        largest = np.sort(expected)[-7:].sum()
        assert found.total >= largest * (1 - 1e-12)
        for device, profit in zip(found.device, found.profit, strict=True):
            assert 0.0 < profit <= expected[outside == device][0] * (1 + 1e-12)
        assert set(found.device) <= set(outside)
        if np.count_nonzero(expected) <= 28:  # all were looked at
            assert set(found.device) == set(outside[expected > 0.0])
            assert found.total == pytest.approx(largest, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("index", [0, 1, 2, 3])
def test_who_makes_nothing_at_both_ends_makes_nothing_in_between(index):
    """Worths come from the definitions, between the ends of a node whose tangents touch somewhere in it."""
    problem = problem_of(index, "errors", num_devices=60, num_blocks=4)
    rng = np.random.default_rng(index)
    inside = np.arange(0, 60, 4)
    pricing = CurvedPricing(problem, np.arange(60))
    pricing.take_inside(inside)
    outside = np.setdiff1d(np.arange(60), inside)
    pairs = {(i, m): Pair(problem, int(i), m, num_points=300) for i in outside for m in range(4)}
    for _ in range(6):
        low, touching, high = np.sort(rng.uniform(0.02, 0.5, 3))
        ends = [duals_at(problem, inside, snr, touching, low) for snr in (low, high)]
        found = pricing.profits(ends)
        makes = [np.zeros(60), np.zeros(60)]
        for at_end, profits in zip(makes, found, strict=True):
            np.maximum.at(at_end, profits.device, profits.profit)
        for share in rng.uniform(0, 1, 5):
            snr = low + share * (high - low)
            factors = [end.energy_factor for end in ends]
            mix = (energy_factor(snr) - factors[0]) / (factors[1] - factors[0])
            price = (1 - mix) * ends[0].value + mix * ends[1].value
            allowed = (1 - mix) * makes[0] + mix * makes[1]
            for (device, block), pair in pairs.items():
                worth = float(pair.best(np.array([snr]))[0])
                assert worth - price[block] <= allowed[device] + 1e-9


def test_the_best_device_of_each_block_is_among_those_found(monkeypatch):
    """Of a crowd only some are looked at: the most profitable are often alike, and suit the same blocks."""
    monkeypatch.setattr(curved_pricing, "_STAND_IN_PAIRS", 800)
    monkeypatch.setattr(curved_pricing, "_CHUNK_PAIRS", 7 * 60)
    problem = problem_of(0, "errors")
    inside = np.arange(0, 400, 50)
    pricing = CurvedPricing(problem, np.arange(400))
    pricing.take_inside(inside)
    duals = duals_at(problem, inside, 0.25, 0.2, 0.25)
    (found,) = pricing.profits([duals])
    assert np.unique(found.device).size < np.count_nonzero(expected_profits(problem, np.arange(400), duals))
    assert set(found.block.tolist()) == set(range(7))


@pytest.mark.parametrize("index", [0, 2])
def test_who_is_not_looked_at_counts_with_its_bound(index, monkeypatch):
    problem = problem_of(index, "errors")
    inside = np.arange(0, 400, 50)
    duals = duals_at(problem, inside, 0.2, 0.2, 0.2)
    monkeypatch.setattr(curved_pricing, "_CHUNK_PAIRS", 7)  # one device at a time,
    monkeypatch.setattr(curved_pricing, "_ENOUGH", 0)  # and the first that makes a profit is enough
    pricing = CurvedPricing(problem, np.arange(400))
    pricing.take_inside(inside)
    (found,) = pricing.profits([duals])
    assert np.unique(found.device).size == 1
    assert (
        found.total
        >= np.sort(expected_profits(problem, np.setdiff1d(np.arange(400), inside), duals))[-7:].sum()
    )


def test_what_is_kept_is_bounded_and_forgotten_without_a_trace(monkeypatch):
    problem = problem_of(1, "errors")
    inside = np.arange(0, 400, 9)
    every = [duals_at(problem, inside, snr, snr, snr) for snr in (0.05, 0.1, 0.2, 0.3)]
    plain = CurvedPricing(problem, np.arange(400)).profits(every)
    monkeypatch.setattr(curved_pricing, "_MOST_KEPT", 700)
    monkeypatch.setattr(curved_pricing, "_CHUNK_PAIRS", 350)
    pricing = CurvedPricing(problem, np.arange(400))
    for duals, expected in zip(every, plain, strict=True):
        (found,) = pricing.profits([duals])
        assert pricing._kept.device.size * 7 <= 700
        assert found.total >= expected.total * (1 - 1e-12)


@pytest.mark.parametrize("index", [1, 2])
def test_the_best_gains_are_over_all_blocks(index):
    problem = problem_of(index, "errors", num_devices=30)
    pricing = CurvedPricing(problem, np.arange(30))
    gain = np.broadcast_to(problem.channel_gain.reshape(30, -1), (30, 7))
    best = (gain / problem.block_noise_w).max(axis=1)
    assert pricing.best_gains() == pytest.approx(best[pricing.device])
