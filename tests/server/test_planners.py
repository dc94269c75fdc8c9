"""One contract for all planners: pure, sorted answers, and a state of arrays that carries all memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from fedwave.allocation import METHODS
from fedwave.errors import RunError
from fedwave.selection import POLICIES
from fedwave.server import Planner, PolicyPlanner, PolicyRunner
from fedwave.testing import check_planner
from fedwave.testing.planner import NUM_SAMPLES, small_cell_planner
from fedwave.wireless.terms import ChannelDraw
from tests.server.radios import CONTRIBUTION, Planned, play, radio_planner, random_radio

NUM_ROUNDS = 4
RADIO = random_radio()
CHANNEL = ChannelDraw(np.array(RADIO["channel_gain"]), np.array(RADIO["interference_w"]))
NAMES = [
    *((policy, None) for policy in POLICIES),
    *((policy, method) for policy in POLICIES for method in METHODS),
]


def make(policy: str, method: str | None, *, num_selected: int = 3, **runner: Any) -> Planner:
    if method is None:
        samples = np.resize(np.array([4, 8]), 9)
        return PolicyPlanner(PolicyRunner(POLICIES[policy](num_selected=num_selected), samples, **runner))
    return radio_planner(RADIO, method=method, policy=policy, num_selected=num_selected, **runner).planner


def played(planner: Planner, num_rounds: int = NUM_ROUNDS) -> list[Planned]:
    """Return the first rounds of a run with contributions that change from round to round."""
    rounds: list[Planned] = []
    for k in range(num_rounds):
        state = rounds[-1].state if rounds else None
        rounds.append(play(planner, np.roll(CONTRIBUTION, 2 * k).tolist(), k, CHANNEL, state))
    return rounds


@pytest.mark.parametrize(("policy", "method"), NAMES)
def test_answers_are_sorted_distinct_devices_and_only_who_reported_uploads(
    policy: str, method: str | None
) -> None:
    for one in played(make(policy, method, seed=0)):
        assert np.all(np.diff(one.asked) > 0)
        assert set(one.asked) <= set(range(9))
        assert np.all(np.diff(one.plan.selected) > 0)
        assert set(one.plan.selected) <= set(one.asked)
        assert len(one.plan.selected) <= 3
        if method is None:
            assert one.plan.allocation is None
            assert len(one.plan.selected) == 3
        else:
            on_block = np.flatnonzero(one.allocation.block_of_device >= 0)
            assert on_block.tolist() == one.plan.selected.tolist()
            blocks = one.allocation.block_of_device[on_block]
            assert len(set(blocks.tolist())) == len(blocks)


@pytest.mark.parametrize(("policy", "method"), NAMES)
def test_every_planner_keeps_the_contract(policy: str, method: str | None) -> None:
    runner = PolicyRunner(POLICIES[policy](num_selected=3), NUM_SAMPLES, seed=0)

    def planner() -> Planner:
        return PolicyPlanner(runner) if method is None else small_cell_planner(runner, method)

    check_planner(planner, over="ideal" if method is None else "cell")


@pytest.mark.parametrize(("policy", "method"), NAMES)
def test_the_state_is_arrays_that_count_what_happened(policy: str, method: str | None) -> None:
    times, last = [0] * 9, [-1] * 9
    contribution, loss = [np.nan] * 9, [np.nan] * 9
    first = make(policy, method, seed=0).initial_state()
    rounds = played(make(policy, method, seed=0))
    for k, one in enumerate(rounds):
        for device, worth, own in zip(
            one.asked.tolist(), one.reports.contribution, one.reports.loss, strict=True
        ):
            contribution[device], loss[device] = worth, own
        for device in one.plan.selected.tolist():
            times[device] += 1
            last[device] = k
        state = one.state
        assert isinstance(state, Mapping)
        assert list(state) == list(first)
        assert all(isinstance(values, np.ndarray) and values.dtype != object for values in state.values())
        assert state["history.times_selected"].tolist() == times
        assert state["history.last_selected"].tolist() == last
        np.testing.assert_array_equal(state["history.last_contribution"], contribution)
        np.testing.assert_array_equal(state["history.last_loss"], loss)


@pytest.mark.parametrize("method", [None, *METHODS])
def test_the_draw_depends_on_the_seed_and_the_round(method: str | None) -> None:
    def asked(seed: int, k: int) -> tuple[int, ...]:
        planner = make("uniform", method, seed=seed)
        return tuple(planner.ask(k, planner.initial_state()).tolist())

    draws = [asked(seed, k) for seed in range(4) for k in range(4)]
    assert len(set(draws)) >= 12  # of 84 possible sets: three or more coincidences are rare


@pytest.mark.parametrize("method", [None, "greedy", "fedl-power", "random"])
def test_round_robin_really_takes_turns(method: str | None) -> None:
    selected = [one.plan.selected.tolist() for one in played(make("round-robin", method, seed=0))]
    assert selected == [[0, 1, 2], [3, 4, 5], [6, 7, 8], [0, 1, 2]]


def test_round_robin_asks_again_who_was_not_worth_an_upload() -> None:
    # Device 1 reports a negative contribution and gets no block: it has not had its turn.
    planner = make("round-robin", "optimal", seed=0)
    rounds = [play(planner, CONTRIBUTION, 0, CHANNEL)]
    rounds.append(play(planner, CONTRIBUTION, 1, CHANNEL, rounds[0].state))
    assert rounds[0].plan.selected.tolist() == [0, 2]
    assert rounds[1].asked.tolist() == [1, 3, 4]


@pytest.mark.parametrize("method", [None, "optimal"])
def test_the_state_of_another_run_is_refused(method: str | None) -> None:
    planner = make("uniform", method, seed=0)
    state = dict(planner.initial_state())
    for wrong, got in (
        ({**state, "history.last_loss": np.zeros(8)}, r"\(8,\)"),
        ({name: value for name, value in state.items() if name != "history.last_loss"}, "None"),
    ):
        with pytest.raises(RunError, match=f"must hold history.last_loss for 9 devices, got {got}. It bel"):
            planner.ask(0, wrong)
        with pytest.raises(RunError, match="another run or planner"):
            play(planner, CONTRIBUTION, 0, CHANNEL, wrong)
