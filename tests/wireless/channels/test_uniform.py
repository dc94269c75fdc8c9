"""The paper's channel: one gain for each device, drawn between two ends."""

from __future__ import annotations

import numpy as np
import pytest

from fedwave.wireless.channels.uniform import UniformConfig


def test_gains_fill_the_range_and_do_not_depend_on_the_round():
    channel = UniformConfig(low=0.1, high=0.5).build(num_devices=20_000)
    gain = channel.gain(0, rng=np.random.default_rng(0))
    assert gain.shape == (20_000,)
    assert 0.1 <= gain.min() < 0.101
    assert 0.499 < gain.max() <= 0.5
    assert gain.mean() == pytest.approx(0.3, abs=0.004)  # four standard errors are 0.0033
    assert np.array_equal(gain, channel.gain(7, rng=np.random.default_rng(0)))
