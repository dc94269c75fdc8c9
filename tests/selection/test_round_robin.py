"""Round robin over many rounds, by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fedwave.selection import History, RoundRobin
from tests.selection.crowds import crowd, last_selected

RNG = np.random.default_rng(0)


def play(num_devices: int, num_selected: int, num_rounds: int) -> list[list[int]]:
    """Return who is asked, round by round, when all that are asked upload."""
    history, asked = History.empty(num_devices), []
    for round_index in range(num_rounds):
        chosen = RoundRobin(num_selected).ask(crowd(num_devices, history=history), rng=RNG)
        last, times = history.last_selected.copy(), history.times_selected.copy()
        last[chosen] = round_index
        times[chosen] += 1
        history = replace(history, last_selected=last, times_selected=times)
        asked.append(chosen.tolist())
    return asked


def test_five_devices_two_at_a_time_take_turns() -> None:
    assert play(5, 2, 6) == [[0, 1], [2, 3], [0, 4], [1, 2], [3, 4], [0, 1]]


@pytest.mark.parametrize(("num_devices", "num_selected"), [(7, 1), (7, 3), (6, 6), (12, 5), (4, 9)])
def test_nobody_is_ever_ahead_by_more_than_one_turn(num_devices: int, num_selected: int) -> None:
    turns = np.zeros(num_devices, dtype=int)
    for chosen in play(num_devices, num_selected, 40):
        turns[chosen] += 1
        assert turns.max() - turns.min() <= 1
    assert turns.sum() == 40 * min(num_selected, num_devices)


def test_whoever_waited_longest_is_first_and_never_counts_as_longest() -> None:
    everybody = crowd(6, device_index=np.array([1, 3, 4, 6, 8, 9]), history=last_selected(7, -1, 2, 2, 0, 5))
    answers = [RoundRobin(count).ask(everybody, rng=RNG).tolist() for count in range(1, 7)]
    assert answers == [[3], [3, 8], [3, 4, 8], [3, 4, 6, 8], [3, 4, 6, 8, 9], [1, 3, 4, 6, 8, 9]]


def test_of_two_that_waited_equally_long_the_one_with_fewer_turns_is_first() -> None:
    history = replace(last_selected(4, 4, 4, 3), times_selected=np.array([5, 3, 3, 9]))
    answers = [RoundRobin(count).ask(crowd(4, history=history), rng=RNG).tolist() for count in range(1, 4)]
    assert answers == [[3], [1, 3], [1, 2, 3]]


def test_luck_and_reports_play_no_part() -> None:
    everybody = crowd(4, contribution=np.array([9.0, 8.0, 7.0, 6.0]), history=last_selected(3, 2, 1, 0))
    answers = {tuple(RoundRobin(2).ask(everybody, rng=np.random.default_rng(seed))) for seed in range(9)}
    assert answers == {(2, 3)}
    drawn = everybody.among(np.array([2, 3]))
    assert RoundRobin(1).select(drawn, rng=RNG).tolist() == [2, 3]  # all that were asked
