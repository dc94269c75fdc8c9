"""Power of choice against brute force: a draw by share of the data, then the largest losses."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedwave.errors import ConfigError
from fedwave.selection import PowerOfChoice
from tests.selection.crowds import crowd

NUM_SAMPLES = np.array([1, 2, 3, 6, 12])
NUM_DRAWS = 6000


def chance_of_each_set(size: int) -> dict[tuple[int, ...], float]:
    """Return the probability of every set, drawing one after another by share of what is left."""
    chance: dict[tuple[int, ...], float] = {}
    for order in itertools.permutations(range(len(NUM_SAMPLES)), size):
        probability, left = 1.0, float(NUM_SAMPLES.sum())
        for device in order:
            probability *= NUM_SAMPLES[device] / left
            left -= NUM_SAMPLES[device]
        drawn = tuple(sorted(order))
        chance[drawn] = chance.get(drawn, 0.0) + probability
    return chance


@pytest.mark.parametrize("num_candidates", [1, 2, 3])
def test_candidates_are_drawn_by_their_share_of_the_data_without_replacement(num_candidates: int) -> None:
    policy = PowerOfChoice(1, num_candidates=num_candidates)
    everybody = crowd(5, num_samples=NUM_SAMPLES)
    expected = chance_of_each_set(num_candidates)
    count = dict.fromkeys(expected, 0)
    rng = np.random.default_rng(2)
    for _ in range(NUM_DRAWS):
        count[tuple(policy.ask(everybody, rng=rng).tolist())] += 1
    assert sum(expected.values()) == pytest.approx(1.0)
    for drawn, chance in expected.items():  # binomial counts, within 4.5 standard deviations
        deviation = math.sqrt(NUM_DRAWS * chance * (1 - chance))
        assert abs(count[drawn] - NUM_DRAWS * chance) < 4.5 * deviation, drawn


@given(losses=st.lists(st.integers(0, 4), min_size=1, max_size=9), count=st.integers(1, 10))
def test_the_largest_losses_are_kept_and_among_equals_the_lower_index(losses: list[int], count: int) -> None:
    values = np.array(losses, dtype=float)
    index = 2 * np.arange(len(losses)) + 5
    reporting = crowd(len(losses), device_index=index, loss=values, contribution=-values)
    got = PowerOfChoice(count).select(reporting, rng=np.random.default_rng(0)).tolist()
    best = max(
        itertools.combinations(range(len(losses)), min(count, len(losses))),
        key=lambda kept: (sum(losses[i] for i in kept), [-i for i in kept]),
    )
    assert got == index[list(best)].tolist()


def test_by_default_twice_as_many_compute_as_upload() -> None:
    assert PowerOfChoice(3).num_candidates == 6
    assert PowerOfChoice(3, num_candidates=3).num_candidates == 3
    assert len(PowerOfChoice(3).ask(crowd(20), rng=np.random.default_rng(0))) == 6
    assert PowerOfChoice(3).ask(crowd(4), rng=np.random.default_rng(0)).tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("wrong", [2, 0, -1, 3.0, "4", True])
def test_fewer_candidates_than_uploads_or_no_whole_number_are_refused(wrong: Any) -> None:
    with pytest.raises(ConfigError) as caught:
        PowerOfChoice(1 if wrong is True else 3, num_candidates=wrong)
    text = str(caught.value)
    assert text.startswith("num_candidates must be a whole number >= num_selected = ")
    assert f"got {wrong!r}. The devices are chosen among the candidates" in text
