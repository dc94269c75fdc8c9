"""Who is asked to compute: against a search over lists, by hand, and by what is promised over many rounds."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedwave.errors import ConfigError
from fedwave.selection import POLICIES, Candidates, History, PowerOfChoice, RoundResult, TopContribution
from fedwave.testing import check_policy
from tests.selection.crowds import crowd

COMPARING = {"top-contribution": TopContribution, "power-of-choice": PowerOfChoice}


def with_past(values: list[float], last: list[int], *, now: int, samples: Any = None) -> Candidates:
    """Return devices that reported these values, as contribution and as loss, in these rounds (-1: never)."""
    heard = np.where(np.array(last) >= 0, values, np.nan)
    history = replace(History.empty(len(values)), last_contribution=heard, last_loss=heard)
    samples = np.full(len(values), 10) if samples is None else np.asarray(samples)
    state = {"last_reported": np.array(last, dtype=np.int64)}
    return replace(crowd(len(values), history=history, num_samples=samples), round_index=now, state=state)


def possible(everybody: Candidates, count: int, ageing: float, exploration: float) -> set[tuple[int, ...]]:
    """Return every set of devices that may be asked, found by trying all of them."""
    last = everybody.state["last_reported"].tolist()
    n = len(last)
    num_explored = min(math.ceil(exploration * count), n)
    found = set()
    for explored in subsets(range(n), num_explored):
        others = [i for i in range(n) if i not in explored]
        if any(last[i] < last[j] for i in others for j in explored):
            continue  # somebody has waited longer
        score = {
            i: everybody.history.last_contribution[i] * ageing ** (everybody.round_index - last[i])
            for i in others
            if last[i] >= 0
        }
        ranked = sorted(score, key=lambda i: (-score[i], i))[: count - num_explored]
        missing = count - num_explored - len(ranked)
        left = [i for i in others if last[i] < 0]
        for drawn in subsets(left, missing):
            found.add(tuple(sorted([*explored, *ranked, *drawn])))
    return found


def subsets(values: Any, count: int) -> list[tuple[int, ...]]:
    """Return all subsets of a size, by counting through all truth values."""
    items = list(values)
    masks = range(2 ** len(items))
    return [
        tuple(items[i] for i in range(len(items)) if mask >> i & 1)
        for mask in masks
        if mask.bit_count() == count
    ]


@pytest.mark.parametrize("policy", COMPARING.values())
@given(
    past=st.lists(st.tuples(st.integers(-3, 9), st.integers(-1, 6)), min_size=1, max_size=7),
    count=st.integers(1, 8),
    ageing=st.sampled_from([0.5, 0.9, 1.0]),
    exploration=st.sampled_from([0.0, 0.2, 0.5, 1.0]),
    seed=st.integers(0, 5),
)
def test_with_a_memory_one_of_the_sets_that_a_search_allows_is_asked(
    policy: Any, past: list[tuple[int, int]], count: int, ageing: float, exploration: float, seed: int
) -> None:
    everybody = with_past([float(value) for value, _ in past], [last for _, last in past], now=7)
    made = policy(1, num_candidates=count, remembers=True, ageing=ageing, exploration=exploration)
    asked = made.ask(everybody, rng=np.random.default_rng(seed))
    assert tuple(asked.tolist()) in possible(everybody, min(count, len(past)), ageing, exploration)


def test_an_old_report_loses_against_a_younger_smaller_one_by_hand() -> None:
    # 10 x 0.9^5 = 5.9 and 8 x 0.9^1 = 7.2 and 6 x 0.9^2 = 4.86; exploration 0: nobody for having waited.
    everybody = with_past([10.0, 8.0, 6.0], [2, 6, 5], now=7)
    ask = {
        count: TopContribution(1, num_candidates=count, remembers=True, exploration=0.0)
        .ask(everybody, rng=np.random.default_rng(0))
        .tolist()
        for count in (1, 2)
    }
    assert ask == {1: [1], 2: [0, 1]}
    fresh = TopContribution(1, num_candidates=1, remembers=True, exploration=0.0, ageing=1.0)
    assert fresh.ask(everybody, rng=np.random.default_rng(0)).tolist() == [0]


@pytest.mark.parametrize("policy", COMPARING.values())
def test_who_never_reported_is_asked_before_who_waited_and_equals_are_drawn_fairly(policy: Any) -> None:
    everybody = with_past([9.0, 1.0, 1.0, 1.0], [6, -1, -1, 0], now=7)
    made = policy(1, num_candidates=1, remembers=True, exploration=1.0)
    rng = np.random.default_rng(0)
    count = np.bincount([int(made.ask(everybody, rng=rng)[0]) for _ in range(2000)], minlength=4)
    assert count[[0, 3]].tolist() == [0, 0]
    assert abs(count[1] - 1000) < 4.5 * math.sqrt(500)  # binomial, 4.5 standard deviations


def test_the_rest_is_drawn_by_the_policys_own_chances() -> None:
    everybody = with_past([0.0] * 3, [-1] * 3, now=0, samples=[1, 1, 8])
    rng = np.random.default_rng(1)
    for policy, chance in ((TopContribution, 1 / 3), (PowerOfChoice, 0.8)):
        made = policy(1, num_candidates=1, remembers=True, exploration=0.0)
        count = sum(int(made.ask(everybody, rng=rng)[0]) == 2 for _ in range(2000))
        assert abs(count - 2000 * chance) < 4.5 * math.sqrt(2000 * chance * (1 - chance))


@pytest.mark.parametrize("policy", COMPARING.values())
@pytest.mark.parametrize("exploration", [0.1, 0.4])
def test_everybody_is_asked_again_within_as_many_rounds_as_the_explored_need(
    policy: Any, exploration: float
) -> None:
    n, count = 23, 5
    made = policy(2, num_candidates=count, remembers=True, exploration=exploration)
    state, history = dict(made.initial_state(n)), History.empty(n)
    asked_in: list[set[int]] = []
    for now in range(60):
        everybody = replace(crowd(n, history=history), round_index=now, state=state)
        asked = made.ask(everybody, rng=np.random.default_rng(now))
        assert len(asked) == count
        asked_in.append(set(asked.tolist()))
        told = np.arange(n, dtype=float)[asked]  # the last devices always have the best values
        best, loss = history.last_contribution.copy(), history.last_loss.copy()
        best[asked], loss[asked] = told, told
        history = replace(history, last_contribution=best, last_loss=loss)
        result = RoundResult(round_index=now, reported=everybody.among(asked), selected=asked, received=asked)
        state = dict(made.after(result))
        assert np.array_equal(np.flatnonzero(state["last_reported"] == now), asked)
    rounds = math.ceil(n / math.ceil(exploration * count))
    for start in range(60 - rounds):
        assert set.union(*asked_in[start : start + rounds]) == set(range(n))
    shares = [sum(device in one for one in asked_in) / 60 for device in (n - 1, 0)]
    assert shares[0] > 2 * shares[1]  # and the best are asked far more often than the worst


def test_without_a_memory_few_are_drawn_evenly_and_nothing_is_remembered() -> None:
    made = TopContribution(1, num_candidates=2)
    rng = np.random.default_rng(0)
    count = np.zeros(5)
    for _ in range(2000):
        asked = made.ask(crowd(5), rng=rng)
        assert len(asked) == 2
        count[asked] += 1
    assert np.all(np.abs(count - 800) < 4.5 * math.sqrt(2000 * 0.4 * 0.6))
    assert made.initial_state(5) == {}
    nobody = np.zeros(0, dtype=np.int64)
    assert made.after(RoundResult(round_index=0, reported=crowd(5), selected=nobody, received=nobody)) == {}
    assert len(TopContribution(1, num_candidates=9).ask(crowd(5), rng=rng)) == 5


@pytest.mark.parametrize("name", COMPARING)
@pytest.mark.parametrize(
    "options",
    [
        {"num_candidates": 40},
        {"num_candidates": 30, "remembers": True},
        {"num_candidates": 35, "remembers": True, "ageing": 1, "exploration": 0},
    ],
)
def test_few_asked_keep_the_contract_with_and_without_a_memory(name: str, options: dict[str, Any]) -> None:
    check_policy(name, **options)


def test_every_policy_that_waits_for_reports_can_ask_few() -> None:
    assert {name for name, policy in POLICIES.items() if policy(num_selected=1).needs_reports} == set(
        COMPARING
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_candidates": 2}, "num_candidates must be a whole number >= num_selected = 3, got 2. The"),
        ({"remembers": True}, "remembers needs num_candidates, got none: everybody reports in every round."),
        ({"num_candidates": 4, "ageing": 0.5}, "ageing is about remembered reports, got 0.5 without a mem"),
        ({"exploration": 0.0}, "exploration is about remembered reports, got 0.0 without a memory. Set rem"),
        ({"num_candidates": 4, "remembers": True, "ageing": 0.0}, "ageing must be above 0 to 1, got 0.0. It"),
        ({"num_candidates": 4, "remembers": True, "ageing": 1.1}, "ageing must be above 0 to 1, got 1.1. It"),
        ({"num_candidates": 4, "remembers": True, "exploration": -0.1}, "exploration must be from 0 to 1, g"),
        ({"num_candidates": 4, "remembers": True, "exploration": 1.5}, "exploration must be from 0 to 1, g"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused_in_one_line(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        TopContribution(3, **options)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)
