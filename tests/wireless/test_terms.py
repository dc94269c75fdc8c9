"""The terms of a link: the broadcast by hand, and what one interference says of all blocks."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from fedwave.errors import ProblemError
from fedwave.wireless.rate import RateModel
from fedwave.wireless.terms import ChannelDraw, Downlink, RadioTerms


def test_a_broadcast_takes_the_worst_listeners_rate():
    down = Downlink(power_w=6.0, bandwidth_hz=2.0, noise_w=2.0, rate=RateModel())
    gain = np.array([5.0, 1.0, 1 / 3])  # SNR 15, 3, 1: 8, 4, 2 bit/s
    assert_allclose(down.rate_bps(gain), [8, 4, 2])
    everyone = np.arange(3)
    assert down.broadcast_time_s(gain, listeners=everyone, model_bits=8.0) == pytest.approx(4.0)
    assert down.broadcast_time_s(gain, listeners=everyone[:2], model_bits=8.0) == pytest.approx(2.0)
    spread = np.array([[4.0, 6.0], [0.0, 2.0]])  # the mean over blocks counts: 5 and 1
    assert down.broadcast_time_s(spread, listeners=everyone[:2], model_bits=8.0) == pytest.approx(2.0)


def test_nobody_waits_for_a_listener_out_of_reach():
    down = Downlink(power_w=6.0, bandwidth_hz=2.0, noise_w=2.0, rate=RateModel(min_snr=2.0))
    assert down.broadcast_time_s(np.array([1.0, 0.1]), listeners=np.arange(2), model_bits=8.0) == 2.0
    assert down.broadcast_time_s(np.array([0.1]), listeners=np.arange(1), model_bits=8.0) == 0.0


def test_one_interference_stands_for_all_blocks_and_a_list_stays():
    terms = RadioTerms(num_blocks=3, bandwidth_hz=2.0, noise_psd_w_per_hz=0.5)
    assert terms.noise_w == 1.0
    gain = np.ones(2)
    assert terms.on_all_blocks(ChannelDraw(gain, np.array([0.2]))).interference_w.tolist() == [0.2] * 3
    listed = ChannelDraw(gain, np.array([0.1, 0.2, 0.3]))
    assert terms.on_all_blocks(listed) is listed


def test_a_channel_of_amplitudes_is_refused():
    with pytest.raises(ProblemError, match=r"channel_gain must hold real numbers, .* abs\(h\) \*\* 2"):
        ChannelDraw(np.ones(2) + 1j, np.zeros(1))
    with pytest.raises(ProblemError, match="interference_w must hold numbers only"):
        ChannelDraw(np.ones(2), np.array([None]))
