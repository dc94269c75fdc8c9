"""One contract for all planners: pure, sorted answers, and a state of arrays that carries all memory."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from fedwave.allocation import METHODS
from fedwave.errors import RunError
from fedwave.selection import POLICIES
from fedwave.server import Plan, Planner, PlannerState, PolicyPlanner, PolicyRunner
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


def assert_equal_states(one: PlannerState, other: PlannerState) -> None:
    assert list(one) == list(other)
    for name in one:
        np.testing.assert_array_equal(one[name], other[name], err_msg=name)


def assert_equal_plans(one: Plan, other: Plan) -> None:
    np.testing.assert_array_equal(one.selected, other.selected)
    assert (one.reason, one.needs_reports) == (other.reason, other.needs_reports)
    np.testing.assert_array_equal(one.scaled_contribution, other.scaled_contribution)
    assert (one.allocation is None) == (other.allocation is None)
    if one.allocation is not None and other.allocation is not None:
        for name in ("block_of_device", "transmit_power_w", "cpu_frequency_hz"):
            np.testing.assert_array_equal(getattr(one.allocation, name), getattr(other.allocation, name))
        assert one.allocation.objective == other.allocation.objective


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
def test_a_planner_is_pure(policy: str, method: str | None) -> None:
    planner = make(policy, method, seed=0)
    first = played(planner)
    states_before = [copy.deepcopy(dict(one.state)) for one in first]
    reports_before = copy.deepcopy(first[1].reports)
    again = played(planner)
    for one, other in zip(first, again, strict=True):
        np.testing.assert_array_equal(one.asked, other.asked)
        assert_equal_plans(one.plan, other.plan)
        assert_equal_states(one.state, other.state)
    # A later round does not change what an earlier one was given.
    for one, before in zip(first, states_before, strict=True):
        assert_equal_states(one.state, before)
    for name in ("device_index", "contribution", "loss", "num_samples", "gradient_norms"):
        np.testing.assert_array_equal(getattr(first[1].reports, name), getattr(reports_before, name))


@pytest.mark.parametrize(("policy", "method"), NAMES)
def test_a_new_planner_goes_on_from_the_state_of_another(policy: str, method: str | None) -> None:
    rounds = played(make(policy, method, seed=0))
    # Through a checkpoint: names, shapes and values are all that is left of the state.
    saved = {name: np.array(values.tolist(), dtype=values.dtype) for name, values in rounds[1].state.items()}
    fresh = make(policy, method, seed=0)
    third = play(fresh, np.roll(CONTRIBUTION, 4).tolist(), 2, CHANNEL, saved)
    np.testing.assert_array_equal(third.asked, rounds[2].asked)
    assert_equal_plans(third.plan, rounds[2].plan)
    assert_equal_states(third.state, rounds[2].state)


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


@pytest.mark.parametrize("method", [None, "greedy", "fedl", "random"])
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
