"""One seed, one independent generator for each purpose, round and device."""

from __future__ import annotations

import itertools

import numpy as np

from fedwave.rng import Stream, generator


def test_a_purpose_draws_what_numpy_draws_from_its_spawn_key() -> None:
    expected = np.random.default_rng(np.random.SeedSequence(7, spawn_key=(1, 3))).random(4)
    np.testing.assert_array_equal(generator(7, Stream.CHANNEL, 3).random(4), expected)


def test_no_two_purposes_rounds_or_seeds_share_a_stream() -> None:
    indices = [(), (0,), (0, 0), (1,), (0, 1), (1, 0)]
    drawn = [
        generator(seed, stream, *index).integers(2**63)
        for seed, stream, index in itertools.product((0, 1), Stream, indices)
    ]
    assert len(set(drawn)) == len(drawn)


def test_the_numbers_of_the_streams_are_published() -> None:
    """Renumbering would change every published number."""
    assert [stream.value for stream in Stream] == list(range(len(Stream)))
    assert [stream.name for stream in Stream][:4] == ["PARTITION", "CHANNEL", "SELECTION", "LOCAL_BATCHES"]
