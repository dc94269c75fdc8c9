"""Selection uniformly at random: every device, and every pair of them, equally often."""

from __future__ import annotations

import itertools
import math

import numpy as np

from fedwave.selection import Uniform
from tests.selection.crowds import crowd

NUM_DRAWS = 4000


def test_it_draws_every_device_and_every_pair_equally_often() -> None:
    # The number of samples plays no part.
    everybody = crowd(6, num_samples=np.array([1, 1, 1, 50, 50, 50]))
    alone, together = np.zeros(6), np.zeros((6, 6))
    rng = np.random.default_rng(4)
    for _ in range(NUM_DRAWS):
        drawn = Uniform(3).ask(everybody, rng=rng)
        alone[drawn] += 1
        together[np.ix_(drawn, drawn)] += 1
    # Counts are binomial; 4.5 standard deviations are exceeded once in 150 000 counts.
    for counts, chance in (
        (alone, 1 / 2),
        (np.array([together[pair] for pair in itertools.combinations(range(6), 2)]), 1 / 5),
    ):
        deviation = math.sqrt(NUM_DRAWS * chance * (1 - chance))
        assert np.abs(counts - NUM_DRAWS * chance).max() < 4.5 * deviation


def test_all_that_were_drawn_upload_whatever_they_report() -> None:
    drawn = crowd(3, device_index=np.array([2, 5, 7]), contribution=np.array([-9.0, 0.0, 9.0]))
    assert Uniform(1).select(drawn, rng=np.random.default_rng(0)).tolist() == [2, 5, 7]
