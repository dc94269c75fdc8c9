from __future__ import annotations

import math

import numpy as np
import pytest

from fedwave.theory import BatchSizes, first_order_variance, meta_variance
from fedwave.theory.learner import Learner
from tests.devices.pools import QUERY_SIZES, SUPPORT_SIZES, local_work
from tests.theory.test_constants import SOME

RATES = {"inner_lr": 0.3, "meta_lr": 0.2}


def test_a_meta_learner_has_its_sets_for_batches() -> None:
    learner = Learner.of(local_work(num_local_steps=4), **RATES)
    assert (learner.inner_lr, learner.meta_lr, learner.num_local_steps) == (0.3, 0.2, 4)
    assert learner.batches.support.tolist() == learner.batches.hessian.tolist() == list(SUPPORT_SIZES)
    assert learner.batches.query.tolist() == list(QUERY_SIZES)
    batches = BatchSizes(np.array(SUPPORT_SIZES), np.array(QUERY_SIZES), np.array(SUPPORT_SIZES))
    expected = meta_variance(SOME, batches, inner_lr=0.3)
    assert learner.meta_variances(SOME) == pytest.approx(expected)
    assert learner.meta_noise(SOME) == pytest.approx(math.sqrt(expected.max()))


def test_drawn_batches_are_at_most_what_there_is() -> None:
    learner = Learner.of(local_work(query_batch_size=3), **RATES)
    assert learner.batches.query.tolist() == [min(size, 3) for size in QUERY_SIZES]
    on_query = Learner.of(local_work(gradient="exact-query", query_batch_size=3), **RATES)
    assert on_query.batches.hessian.tolist() == on_query.batches.query.tolist()


def test_without_a_hessian_corollary_2_speaks() -> None:
    learner = Learner.of(local_work(gradient="first-order"), **RATES)
    expected = first_order_variance(SOME, learner.batches, inner_lr=0.3)
    assert learner.meta_variances(SOME) == pytest.approx(expected)


def test_plain_descent_takes_no_inner_step() -> None:
    learner = Learner.of(local_work(gradient="plain"), **RATES)
    assert (learner.inner_lr, learner.meta_lr) == (0.0, 0.2)
    everything = np.add(SUPPORT_SIZES, QUERY_SIZES)
    assert learner.meta_variances(SOME) == pytest.approx(6 * 9 / everything)
