"""Shares against theory, supply respected."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from fedwave.data.partitions.dirichlet import dirichlet_counts
from fedwave.rng import Stream, generator


def stream(seed: int = 0) -> np.random.Generator:
    return generator(seed, Stream.PARTITION)


@settings(max_examples=60, deadline=None)
@given(
    supply=st.lists(st.integers(0, 60), min_size=1, max_size=6).filter(sum),
    num_devices=st.integers(1, 12),
    concentration=st.floats(1e-3, 1e3),
    seed=st.integers(0, 100),
)
def test_no_class_gives_more_than_it_has_and_every_device_gets_its_size(
    supply, num_devices, concentration, seed
):
    supply = np.array(supply)
    num_devices = min(num_devices, int(supply.sum()))
    size = supply.sum() // num_devices
    counts = dirichlet_counts(supply, num_devices, concentration=concentration, rng=stream(seed))
    assert counts.min() >= 0
    assert np.all(counts.sum(axis=0) <= supply)
    assert np.all(counts.sum(axis=1) == size)


@pytest.mark.parametrize("concentration", [0.1, 1.0, 10.0])
def test_dirichlet_shares_have_the_mean_and_variance_of_theory(concentration):
    num_classes, size = 5, 100
    counts = dirichlet_counts(
        np.full(num_classes, 10**7),
        20_000,
        concentration=concentration,
        samples_per_device=size,
        rng=stream(),
    )
    # Dirichlet-multinomial with equal parameters: mean n/K, variance n p (1 - p) (n + K a) / (1 + K a).
    share, total = 1 / num_classes, num_classes * concentration
    variance = size * share * (1 - share) * (size + total) / (1 + total)
    assert_allclose(counts.mean(axis=0), size * share, atol=5 * np.sqrt(variance / 20_000))
    assert_allclose(counts.var(axis=0), variance, rtol=0.06)


def test_small_concentration_gives_few_classes_and_large_gives_all():
    few, many = (
        (
            dirichlet_counts(np.full(10, 1000), 100, concentration=c, samples_per_device=50, rng=stream()) > 0
        ).sum(axis=1)
        for c in (0.05, 100.0)
    )
    assert few.mean() < 3
    assert many.mean() > 9
