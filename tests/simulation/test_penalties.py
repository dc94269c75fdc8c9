"""Penalties that are estimated as a run goes on: when, on whom, and what they make of the reports."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fedwave.rng import Stream, generator
from fedwave.selection import CalibratedPenalties, EstimatedPenalties, Penalties, contribution
from fedwave.server import Reports
from fedwave.simulation.penalties import ChangingPenalties, PenaltyState
from fedwave.theory import meta_dissimilarity, similarity_penalty, variance_penalty
from fedwave.theory.estimates import Effort, estimate_constants
from fedwave.theory.learner import Learner
from tests.devices.pools import INNER_LR, META_LR, first_model, local_work

RULE = EstimatedPenalties(every=3, smoothing=0.25, num_devices=4, num_iterations=2, num_probes=1)


def changing(rule: EstimatedPenalties = RULE, **changes: Any) -> ChangingPenalties:
    local = local_work("softmax", **changes)
    return ChangingPenalties(
        rule=rule, local=local, learner=Learner.of(local, inner_lr=INNER_LR, meta_lr=META_LR)
    )


def reports_of(*devices: int) -> Reports:
    at = np.array(devices, dtype=np.int64)
    norms = np.array([[2.0 + i, 1.0] for i in devices]).reshape(-1, 2)
    samples = np.array([7, 10, 5, 2, 7, 11, 4])[at]
    return Reports(
        device_index=at, contribution=np.zeros(len(at)), loss=np.zeros(len(at)), num_samples=samples,
        gradient_norms=norms,
    )  # fmt: skip


def test_the_estimate_is_that_of_corollary_1_at_the_model_on_those_who_reported() -> None:
    penalties = changing()
    local, theta, reports = penalties.local, first_model(penalties.local), reports_of(0, 2, 3, 4, 6)
    constants = estimate_constants(
        local.model, local.task, local.pool, theta, step_length=META_LR,
        effort=Effort(num_devices=4, num_iterations=2, num_probes=1),
        rng=generator(5, Stream.THEORY, 9), among=reports.device_index, chunk_samples=24,
    ).constants()  # fmt: skip
    noise = penalties.learner.meta_noise(constants)
    options = {"inner_lr": INNER_LR, "meta_lr": META_LR, "num_local_steps": 2}
    found = penalties.estimate(9, theta, reports)
    assert found.similarity == similarity_penalty(constants, noise, **options)
    assert found.similarity > meta_dissimilarity(constants, inner_lr=INNER_LR)
    assert found.variance == variance_penalty(constants, inner_lr=INNER_LR)
    printed = changing(EstimatedPenalties(every=3, num_devices=4, num_iterations=2, as_printed=True))
    assert printed.estimate(9, theta, reports).similarity == similarity_penalty(
        constants, noise, as_printed=True, **options
    )


def test_it_is_for_as_many_local_steps_as_the_round_has() -> None:
    penalties = changing()
    theta, two = first_model(penalties.local), reports_of(0, 2, 3)
    one = replace(two, gradient_norms=two.gradient_norms[:, :1])
    first, second = (penalties.estimate(0, theta, own) for own in (one, two))
    assert first.similarity < second.similarity  # without drift
    assert first.variance == second.variance


def test_it_is_made_every_few_rounds_smoothed_and_scores_every_report() -> None:
    penalties, reports = changing(), reports_of(0, 1, 2, 5)
    theta, state = first_model(penalties.local), changing().initial()
    assert state == PenaltyState(Penalties(0.7, 1.3))  # the settings' own, before anything is known
    expected: Penalties | None = None
    for k in range(7):
        if k % 3 == 0:
            expected = RULE.smoothed(expected, penalties.estimate(k, theta, reports))
        state, scored = penalties.after_reports(k, theta, reports, state)
        assert state.theory == state.used == expected
        assert expected is not None
        np.testing.assert_array_equal(
            scored.contribution,
            contribution(
                reports.gradient_norms, reports.num_samples,
                similarity_penalty=expected.similarity, variance_penalty=expected.variance,
            ),
        )  # fmt: skip
        assert scored.gradient_norms is reports.gradient_norms


def test_two_devices_are_needed_and_the_first_round_that_has_them_counts() -> None:
    penalties = changing()
    theta, state = first_model(penalties.local), penalties.initial()
    for few in (reports_of(), reports_of(3)):
        assert penalties.after_reports(0, theta, few, state) == (state, few)
    two = reports_of(3, 5)
    state, _ = penalties.after_reports(1, theta, two, state)  # not due, but nothing is known yet
    assert state.theory == penalties.estimate(1, theta, two)
    later, alone = penalties.after_reports(3, theta, reports_of(3), state)  # due, but one device alone
    assert later == state
    assert alone.contribution[0] != 0.0


def test_calibrated_penalties_scale_with_the_norms_of_each_round() -> None:
    penalties = changing(CalibratedPenalties(every=100, num_devices=3, num_iterations=1, share_above=0.5))
    theta, state = first_model(penalties.local), penalties.initial()
    state, _ = penalties.after_reports(0, theta, reports_of(0, 1, 2, 5), state)
    other, _ = penalties.after_reports(1, theta, reports_of(3, 4, 5, 6), state)
    assert state.theory == other.theory != state.used != other.used
    for own, reports in ((state.used, reports_of(0, 1, 2, 5)), (other.used, reports_of(3, 4, 5, 6))):
        is_above = reports.gradient_norms[:, 0] > own.turning_point(reports.num_samples)
        assert is_above.sum() == 2


@pytest.mark.parametrize("theory", [None, Penalties(1 / 3, 1e-300)])
def test_the_state_comes_back_from_its_arrays(theory: Penalties | None) -> None:
    state = PenaltyState(Penalties(0.1, 2.0), theory)
    assert PenaltyState.from_arrays(state.to_arrays()) == state
