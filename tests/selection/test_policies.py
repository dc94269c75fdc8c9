"""One contract for every selection policy."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedwave.errors import ConfigError, ProblemError
from fedwave.selection import POLICIES, Candidates, require_enough_devices
from fedwave.testing import check_policy
from tests.selection.crowds import crowd, crowds

# How many of n candidates each policy asks to compute when k are to upload.
NUM_ASKED = {
    "uniform": lambda k, n: min(k, n),
    "top-contribution": lambda k, n: n,
    "power-of-choice": lambda k, n: min(2 * k, n),
    "round-robin": lambda k, n: min(k, n),
}


def test_every_policy_is_in_the_contract() -> None:
    assert set(NUM_ASKED) == set(POLICIES)


@pytest.mark.parametrize("name", POLICIES)
def test_every_policy_keeps_the_contract(name: str) -> None:
    check_policy(name)


@pytest.mark.parametrize("name", POLICIES)
@given(everybody=crowds(), num_selected=st.integers(1, 30), seed=st.integers(0, 9))
def test_as_many_are_asked_and_selected_as_there_can_be(
    name: str, everybody: Candidates, num_selected: int, seed: int
) -> None:
    policy = POLICIES[name](num_selected=num_selected)
    unheard = replace(everybody, contribution=None, loss=None)
    asked = policy.ask(unheard, rng=np.random.default_rng(seed))
    assert len(set(asked.tolist())) == len(asked) == NUM_ASKED[name](num_selected, len(everybody))
    selected = policy.select(everybody.among(asked), rng=np.random.default_rng(seed))
    assert len(set(selected.tolist())) == len(selected) == min(num_selected, len(everybody))


@pytest.mark.parametrize("name", POLICIES)
def test_fewer_may_have_reported_than_were_asked_and_nobody_at_all(name: str) -> None:
    policy = POLICIES[name](num_selected=3)
    for reporting in ([4, 7], [5], []):
        few = crowd(
            len(reporting),
            device_index=np.array(reporting, dtype=np.int64),
            contribution=np.ones(len(reporting)),
            loss=np.ones(len(reporting)),
        )
        assert policy.select(few, rng=np.random.default_rng(0)).tolist() == reporting


@pytest.mark.parametrize("name", POLICIES)
def test_a_policy_waits_for_reports_just_if_they_can_change_its_choice(name: str) -> None:
    policy = POLICIES[name](num_selected=2)
    rng = np.random.default_rng(0)
    choices = set()
    for values in np.array([[1.0, 2, 3, 4], [4, 3, 2, 1], [1, 4, 4, 1]]):
        reporting = crowd(4, contribution=values, loss=values).among(np.array([0, 1, 2, 3]))
        choices.add(tuple(policy.select(reporting, rng=rng)))
    assert policy.needs_reports is (len(choices) > 1)


@pytest.mark.parametrize(
    ("name", "column"), [("top-contribution", "contribution"), ("power-of-choice", "loss")]
)
def test_a_policy_that_needs_reports_is_refused_without_them(name: str, column: str) -> None:
    with pytest.raises(ProblemError) as caught:
        POLICIES[name](num_selected=1).select(crowd(3), rng=np.random.default_rng(0))
    assert str(caught.value) == (
        f'policy "{name}" compares each device\'s {column}, got none. Let the devices compute first.'
    )


@pytest.mark.parametrize(("count", "is_possible"), [(0, False), (1, True), (5, True), (6, False)])
def test_selecting_more_devices_than_there_are_fails_with_the_numbers(count: int, is_possible: bool) -> None:
    if is_possible:
        require_enough_devices(count, 5)
        return
    with pytest.raises(ConfigError, match=rf"training devices \(5\), got {count}"):
        require_enough_devices(count, 5)
