"""Batteries in numbers that are worked out by hand."""

from __future__ import annotations

import numpy as np

from fedwave.wireless.battery import Batteries
from fedwave.wireless.harvest import PiecewiseConstant

# One watt comes in from second 10 on; devices draw 0.5 W for themselves.
BATTERIES = Batteries(
    capacity_j=np.array([20.0, 20.0, 8.0]),
    initial_charge_j=np.array([10.0, 3.0, 8.0]),
    draw_w=np.array([0.5, 0.5, 0.0]),
    min_charge_j=np.array([0.0, 4.0, 1.0]),
    interval_s=12.0,
    harvest=PiecewiseConstant(np.array([10.0]), np.ones((1, 3))),
)


def test_who_is_at_its_least_charge_sleeps() -> None:
    assert BATTERIES.is_awake(np.array([0.0, 4.0, 1.0])).tolist() == [False] * 3
    assert BATTERIES.is_awake(np.array([1e-9, 4.1, 1.5])).tolist() == [True] * 3


def test_a_round_can_spend_the_charge_and_the_harvest_less_the_draw() -> None:
    available_j = BATTERIES.available_j(np.array([10.0, 1.0, 8.0]), 6.0, 8.0)  # 4 s of sun in 8 s
    assert available_j.tolist() == [10.0, 1.0, 12.0]
    assert BATTERIES.available_j(np.zeros(3), 0.0, 8.0).tolist() == [0.0, 0.0, 0.0]  # never less than nothing


def test_the_pause_fills_up_to_the_capacity_and_never_below_zero() -> None:
    # The round began at 0 and lasted 2 s: 10 s of pause, of which the last 2 are sunny.
    assert BATTERIES.next_start_s(0.0, 2.0) == 12.0
    charge_j = BATTERIES.charge_after_j(np.array([5.0, 1.0, 7.5]), 0.0, 2.0)
    assert charge_j.tolist() == [2.0, 0.0, 8.0]  # 5 + 2 - 5, 1 + 2 - 5, full


def test_what_a_round_leaves_beyond_the_capacity_is_lost_before_the_pause() -> None:
    # A round longer than the interval: the next follows at once.
    assert BATTERIES.next_start_s(20.0, 30.0) == 50.0
    assert BATTERIES.charge_after_j(np.array([25.0, 2.0, 11.0]), 20.0, 30.0).tolist() == [20.0, 2.0, 8.0]
    assert BATTERIES.charge_after_j(np.array([25.0, 2.0, 11.0]), 0.0, 2.0).tolist() == [17.0, 0.0, 8.0]
