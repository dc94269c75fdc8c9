"""A number for all, or a draw for each."""

from __future__ import annotations

import numpy as np

from fedwave.wireless.settings.distribution import Uniform, bounds, draw


def test_a_number_takes_nothing_from_the_generator():
    rng = np.random.default_rng(0)
    assert draw(3, 4, rng=rng).tolist() == [3.0] * 4
    assert rng.random() == np.random.default_rng(0).random()


def test_a_range_is_drawn_from_evenly_and_has_its_ends_as_bounds():
    drawn = draw(Uniform(low=-1.0, high=3.0), 1000, rng=np.random.default_rng(0))
    assert np.array_equal(drawn, -1.0 + 4.0 * np.random.default_rng(0).random(1000))
    assert bounds(Uniform(low=-1.0, high=3.0)) == (-1.0, 3.0)
    assert bounds(2) == (2.0, 2.0)
