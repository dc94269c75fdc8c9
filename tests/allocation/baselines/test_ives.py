from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from scipy.optimize import linear_sum_assignment

import fedwave.allocation.baselines.ives as ives_module
from fedwave.allocation import Status, allocate, total_cost
from fedwave.errors import FedwaveError, ProblemError
from tests.allocation.allocation_oracles import powers_by_stragglers
from tests.allocation.allocation_problems import (
    FEATURES,
    link_problem,
    paper_problem,
    problems,
    small_problem,
)


def literal_ives(problem, max_iterations=50):
    """Run Alg. 2 with Lemma 6 by its straggler loop and bisection, and a matching per delay from SciPy."""
    noise = problem.interference_w + problem.bandwidth_hz * problem.noise_psd_w_per_hz
    gain = problem.channel_gain
    delay = max(
        problem.model_bits
        / (problem.bandwidth_hz * np.log2(1 + gain[i] * problem.max_power_w[i] / noise.max()))
        for i in range(problem.num_devices)
    )
    pairs, power = [], {}
    for _ in range(max_iterations):
        mu = noise[None, :] * (2 ** (problem.model_bits / (problem.bandwidth_hz * delay)) - 1) / gain[:, None]
        weight = problem.contribution[:, None] - problem.energy_weight * delay * mu
        weight[mu > problem.max_power_w[:, None] * (1 + 1e-12)] = -1.0
        row, column = linear_sum_assignment(np.maximum(weight, 0), maximize=True)
        new_pairs = [(int(i), int(m)) for i, m in zip(row, column, strict=True) if weight[i, m] > 0]
        if new_pairs == pairs:
            break
        pairs = new_pairs
        power = powers_by_stragglers(problem, pairs)
        delay = max(
            problem.model_bits / (problem.bandwidth_hz * np.log2(1 + gain[i] * power[i] / noise[m]))
            for i, m in pairs
        )
    return dict(pairs), power


@pytest.mark.parametrize("seed", range(8))
def test_equals_a_literal_reading_of_algorithm_2(seed):
    problem = paper_problem(seed, num_devices=25, num_blocks=6)
    found = allocate(problem, "ives", keep_negative=True)
    blocks, power = literal_ives(problem)
    assert {int(i): int(found.block_of_device[i]) for i in found.selected} == blocks
    for i in blocks:
        assert found.transmit_power_w[i] == pytest.approx(power[i], rel=1e-6)


@pytest.mark.parametrize("exponential", [False, True])
def test_objective_never_falls_and_the_trace_ends_at_it(exponential):
    for seed in range(25):
        problem = paper_problem(seed, exponential=exponential)
        found = allocate(problem, "ives", keep_negative=True)
        assert (np.diff(found.trace) >= -1e-9 * np.abs(found.trace[:-1])).all()
        assert found.trace.max() == pytest.approx(found.objective)
        assert found.objective == pytest.approx(total_cost(problem, found))
        assert found.status is Status.CONVERGED
        assert found.iterations == found.trace.size


@settings(max_examples=100, deadline=None)
@given(problems(max_devices=5, max_blocks=4))
def test_theorem_5_holds_at_any_scale(problem):
    found = allocate(problem, "ives")  # raises if the objective falls
    assert found.objective == pytest.approx(total_cost(problem, found))


def test_a_fall_of_the_objective_is_raised_not_hidden(monkeypatch):
    values = iter([(0.5, 10.0), (0.4, 9.0)])
    monkeypatch.setattr(ives_module, "value_at_best_snr", lambda *args, **kwargs: next(values))
    with pytest.raises(
        FedwaveError, match=r"IVES lowered its objective from 10.0 to 9.0, which Theorem 5 rules out"
    ):
        allocate(paper_problem(0), "ives")


def test_printed_start_gets_stuck_where_a_better_start_does_not():
    problem = paper_problem(0)
    best = allocate(problem)
    stuck = allocate(problem, "ives", keep_negative=True)
    helped = allocate(problem, "ives", start=best.upload_delay_s)
    assert stuck.upload_delay_s > 5 * best.upload_delay_s
    assert helped.objective == pytest.approx(best.objective)


def test_a_fixed_point_below_zero_becomes_the_empty_selection_unless_asked_for():
    for seed in range(40):
        problem = paper_problem(seed)
        printed = allocate(problem, "ives", keep_negative=True)
        corrected = allocate(problem, "ives")
        if corrected.num_selected == 0:
            assert corrected.objective > printed.objective
            assert "less than nobody uploading" in corrected.reason
            return
    pytest.fail("no seed had a fixed point below zero")


def test_iteration_limit_is_a_status():
    found = allocate(paper_problem(1), "ives", max_iterations=1, keep_negative=True)
    assert found.status is Status.LIMIT
    assert found.iterations == 1


def test_bad_options_are_refused():
    with pytest.raises(ProblemError, match="start must be a delay > 0 in seconds, got -1"):
        allocate(small_problem(), "ives", start=-1.0)
    with pytest.raises(ProblemError, match="max_iterations must be >= 1, got 0"):
        allocate(small_problem(), "ives", max_iterations=0)


def test_large_problems_are_pruned_without_changing_the_value(monkeypatch):
    problem = paper_problem(3, num_devices=400, num_blocks=5)
    for start in (None, 6.0):
        whole = allocate(problem, "ives", start=start, keep_negative=True)
        with monkeypatch.context() as patch:
            patch.setattr(ives_module, "_DENSE_PAIRS", 10)
            pruned = allocate(problem, "ives", start=start, keep_negative=True)
        np.testing.assert_allclose(pruned.trace, whole.trace, rtol=1e-9)


def some_features(rng, share):
    return [feature for feature in FEATURES if rng.random() < share]


def test_ives_climbs_with_every_term_and_never_beats_the_optimum():
    for seed in range(40):
        rng = np.random.default_rng(seed)
        problem = link_problem(rng, some_features(rng, 0.6), max_devices=8, max_blocks=4)
        found = allocate(problem, "ives", keep_negative=True)  # raises if the objective falls
        if np.isfinite(found.objective) and found.num_selected:
            assert found.trace.max() == pytest.approx(found.objective, rel=1e-9, abs=1e-9)
            best = allocate(problem)
            helped = allocate(problem, "ives", start=best.upload_delay_s) if best.num_selected else best
            assert helped.objective <= best.objective + 1e-9 * abs(best.objective)
