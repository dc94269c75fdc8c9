from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import norm

from fedwave.data.partitions.few_classes import few_class_counts, truncated_gaussian_counts, truncated_normal
from fedwave.errors import DataError
from fedwave.rng import Stream, generator


def stream() -> np.random.Generator:
    return generator(0, Stream.PARTITION)


def test_counts_follow_the_truncated_gaussian_rounded_to_whole_numbers():
    drawn = truncated_gaussian_counts((200_000,), mean=5.0, std=5.0, at_least=2, rng=stream())
    values = np.arange(2, 21)  # 20 = 5 + 3 * 5
    weight = norm.cdf(values + 0.5, 5, 5) - norm.cdf(values - 0.5, 5, 5)
    share = np.bincount(drawn, minlength=21)[2:] / len(drawn)
    assert drawn.min() == 2
    assert drawn.max() == 20
    assert_allclose(share, weight / weight.sum(), atol=0.004)  # five sigma of the largest share is 0.0034


def test_a_mean_far_below_the_truncation_still_works():
    drawn = truncated_gaussian_counts((1000,), mean=1.0, std=0.05, at_least=10, at_most=12, rng=stream())
    assert drawn.min() == 10


def test_without_spread_all_counts_are_the_mean():
    assert set(truncated_gaussian_counts((50,), mean=4.0, std=0.0, at_least=2, rng=stream())) == {4}


def test_each_device_has_two_distinct_classes_and_all_pairs_occur_equally_often():
    supply = np.full(5, 10**6)
    counts = few_class_counts(supply, 20_000, shots=1, min_query=1, rng=stream())
    assert np.all((counts > 0).sum(axis=1) == 2)
    codes = (counts > 0) @ (2 ** np.arange(5))
    _, occurrences = np.unique(codes, return_counts=True)
    assert len(occurrences) == 10
    assert np.all(np.abs(occurrences - 2000) < 5 * np.sqrt(2000 * 0.9))


@pytest.mark.parametrize(("classes", "shots", "min_query"), [(1, 1, 1), (3, 5, 2), (5, 2, 4)])
def test_k_classes_and_k_shots_leave_a_query_sample_in_each_class(classes, shots, min_query):
    counts = few_class_counts(
        np.full(5, 1000), 50, shots=shots, min_query=min_query, rng=stream(), classes_per_device=classes
    )
    assert np.all((counts > 0).sum(axis=1) == classes)
    assert counts[counts > 0].min() >= shots + min_query


def test_more_classes_per_device_than_there_are_is_refused():
    with pytest.raises(DataError, match="classes_per_device is 4 but the dataset has samples of 3 classes"):
        few_class_counts(np.array([9, 9, 0, 9]), 2, shots=1, min_query=1, rng=stream(), classes_per_device=4)


@pytest.mark.parametrize(
    ("low", "high"),
    [(-0.7, 5.1), (-9.0, -2.0), (-1.0, 1.0), (0.3, 0.4), (2.0, 8.0), (-0.1, 30.0), (12.0, 13.0)],
)
def test_the_truncated_normal_is_that_of_scipy(low, high):
    from scipy.stats import truncnorm

    share = np.random.default_rng(0).uniform(size=500)
    np.testing.assert_allclose(
        truncated_normal(share, low, high), truncnorm.ppf(share, low, high), rtol=1e-12, atol=1e-13
    )
