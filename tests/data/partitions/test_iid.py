"""Shares against theory, supply respected."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from fedwave.data.partitions.iid import iid_counts
from fedwave.rng import Stream, generator


def stream(seed: int = 0) -> np.random.Generator:
    return generator(seed, Stream.PARTITION)


@settings(max_examples=60, deadline=None)
@given(
    supply=st.lists(st.integers(0, 60), min_size=1, max_size=6).filter(sum),
    num_devices=st.integers(1, 12),
    seed=st.integers(0, 100),
)
def test_no_class_gives_more_than_it_has_and_every_device_gets_its_size(supply, num_devices, seed):
    supply = np.array(supply)
    num_devices = min(num_devices, int(supply.sum()))
    size = supply.sum() // num_devices
    counts = iid_counts(supply, num_devices, rng=stream(seed))
    assert counts.min() >= 0
    assert np.all(counts.sum(axis=0) <= supply)
    assert np.all(counts.sum(axis=1) == size)


def test_iid_counts_are_hypergeometric():
    supply = np.array([3000, 1000])
    counts = iid_counts(supply, 400, samples_per_device=10, rng=stream())
    # Mean 10 * 3/4; variance 10 * 3/4 * 1/4 * (4000 - 10) / (4000 - 1).
    assert_allclose(counts[:, 0].mean(), 7.5, atol=5 * np.sqrt(1.87 / 400))
    assert_allclose(counts[:, 0].var(), 1.87, rtol=0.4)
