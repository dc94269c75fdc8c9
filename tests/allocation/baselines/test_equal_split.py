"""Equal shares at full power, in order, whatever the channel; other accesses are in access/test_rules.py."""

from __future__ import annotations

import numpy as np
import pytest

from fedwave.allocation import Status, allocate
from fedwave.wireless.rate import RateModel
from tests.allocation.allocation_problems import paper_problem


def test_one_block_each_in_order_at_full_power() -> None:
    problem = paper_problem(1, num_devices=5, num_blocks=3, rate=RateModel(max_spectral_efficiency=9.0))
    found = allocate(problem, "equal-split", selected=[0, 2, 4])
    assert found.block_of_device.tolist() == [0, -1, 1, -1, 2]
    assert found.transmit_power_w[[0, 2, 4]] == pytest.approx(problem.max_power_w[[0, 2, 4]])
    assert found.status is Status.FEASIBLE


def test_no_more_power_than_the_modem_can_use() -> None:
    """A bit per second and hertz needs an SNR of 1: noise 1.4 W at a gain of 0.5 takes 2.8 W."""
    problem = paper_problem(
        1,
        num_devices=2,
        num_blocks=2,
        interference_w=np.full(2, 0.4),
        channel_gain=0.5,
        max_power_w=50.0,
        rate=RateModel(max_spectral_efficiency=1.0),
    )
    assert allocate(problem, "equal-split").transmit_power_w == pytest.approx([2.8, 2.8])


def test_who_cannot_upload_is_left_out() -> None:
    problem = paper_problem(1, num_devices=2, num_blocks=2, channel_gain=np.array([0.0, 1.0]))
    found = allocate(problem, "equal-split")
    assert found.selected.tolist() == [1]
    assert found.block_of_device.tolist() == [-1, 1]
