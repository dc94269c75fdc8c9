from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fedwave.allocation.baselines.chen2020 as chen_module
from fedwave.allocation import (
    Status,
    account,
    allocate,
    violations,
)
from fedwave.errors import ProblemError
from fedwave.wireless.rate import RateModel
from tests.allocation.allocation_oracles import assignments
from tests.allocation.allocation_problems import paper_problem


def test_it_matches_the_best_weights_within_the_limits_at_full_power():
    problem = paper_problem(2, max_delay_s=4.0)
    found = allocate(problem, "chen2020")
    assert found.status is Status.FEASIBLE
    assert_allclose(found.transmit_power_w[found.selected], problem.max_power_w[found.selected], rtol=1e-12)
    assert account(problem, found).upload_delay_s.max() <= 4.0
    np.testing.assert_array_equal(found.cpu_frequency_hz, problem.max_frequency_hz)


def test_without_packet_errors_serves_the_largest_contributions():
    problem = paper_problem(2)
    found = allocate(problem, "chen2020", waterfall_threshold=0.0)
    assert set(found.selected) == set(np.argsort(-problem.contribution)[:20])


def test_it_equals_brute_force_over_permutations():
    problem = paper_problem(6, num_devices=4, num_blocks=3)
    found = allocate(problem, "chen2020", max_delay_s=6.0)
    noise = problem.interference_w + 1.0

    def weight(i, m):
        snr = problem.max_power_w[i] * problem.channel_gain[i] / noise[m]
        return problem.contribution[i] * np.exp(-1.08 / snr) if 1 / np.log2(1 + snr) <= 6.0 else -np.inf

    best = max(sum(weight(i, m) for i, m in pairs) for pairs in assignments(4, 3))
    ours = sum(weight(i, found.block_of_device[i]) for i in found.selected)
    assert ours == pytest.approx(best)


def test_its_own_limits_only_tighten_the_problems():
    problem = paper_problem(2, max_delay_s=4.0)
    found = allocate(problem, "chen2020", max_delay_s=100.0, max_energy_j=2.0)
    entry = account(problem, found)
    assert entry.upload_delay_s.max() <= 4.0
    assert entry.upload_energy_j.max() <= 2.0
    with pytest.raises(ProblemError, match="waterfall_threshold must be >= 0, got -1"):
        allocate(problem, "chen2020", waterfall_threshold=-1.0)


def test_pruning_many_devices_does_not_change_the_matching(monkeypatch):
    limits = {"max_delay_s": 5.0, "max_energy_j": np.random.default_rng(0).uniform(0.5, 3, 800)}
    for changes in ({}, limits):
        problem = paper_problem(1, num_devices=800, num_blocks=6, **changes)
        pruned = allocate(problem, "chen2020")
        with monkeypatch.context() as patch:
            patch.setattr(chen_module, "undominated", lambda criteria, depth: np.arange(criteria[0].size))
            whole = allocate(problem, "chen2020")
        np.testing.assert_array_equal(pruned.block_of_device, whole.block_of_device)


def test_chen2020_plans_for_outage_deadline_and_the_problems_packet_errors():
    plain = paper_problem(3)
    old = allocate(plain, "chen2020")
    snr = plain.snr_of(old.selected, old.block_of_device[old.selected], old.transmit_power_w[old.selected])
    for terms in (
        {"min_snr": float(np.median(snr))},
        {"max_round_delay_s": old.compute_delay_s + 0.5 * old.upload_delay_s},
        {
            "min_snr": 0.1,
            "max_round_delay_s": old.compute_delay_s + 0.7 * old.upload_delay_s,
            "fixed_delay_s": 0.1,
        },
    ):
        problem = replace(plain, **terms)
        found = allocate(problem, "chen2020")
        assert found.status is Status.FEASIBLE
        assert found.num_selected > 0
        assert violations(problem, found) == ()
    own = allocate(replace(plain, packet_error_waterfall=0.1), "chen2020")
    same = allocate(plain, "chen2020", waterfall_threshold=0.1)
    assert_array_equal(own.block_of_device, same.block_of_device)
    assert set(own.selected) != set(old.selected)
    theirs = allocate(plain, "chen2020", waterfall_threshold=1.08)
    assert_array_equal(old.block_of_device, theirs.block_of_device)


def test_no_power_is_spent_past_the_cap_of_the_rate():
    problem = paper_problem(2, max_delay_s=50.0, rate=RateModel(max_spectral_efficiency=0.1))
    found = allocate(problem, "chen2020")
    device = found.selected
    snr = problem.snr_of(device, found.block_of_device[device], found.transmit_power_w[device])
    assert_allclose(snr.max(), problem.rate.max_snr, rtol=1e-12)
    assert np.all(found.transmit_power_w[device] <= problem.max_power_w[device])
    heard = replace(problem, min_snr=2.0 * problem.rate.max_snr)  # the decoder asks for more than the rate
    device = (found := allocate(heard, "chen2020")).selected
    snr = problem.snr_of(device, found.block_of_device[device], found.transmit_power_w[device])
    assert_allclose(snr.max(), 2.0 * problem.rate.max_snr, rtol=1e-9)


def test_without_its_limits_it_says_once_that_it_is_not_the_method(caplog):
    chen_module._say_that_limits_are_missing.cache_clear()
    for limits in ({"max_delay_s": 0.5}, {"max_energy_j": 0.003}):
        allocate(paper_problem(2), "chen2020", **limits)
        allocate(paper_problem(2, **limits), "chen2020")
    assert caplog.text == ""
    allocate(paper_problem(2), "chen2020")
    allocate(paper_problem(2), "chen2020")
    assert caplog.text.count("is not the method of its paper") == 1
