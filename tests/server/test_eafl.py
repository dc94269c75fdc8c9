"""EAFL by hand: rewards, scores, who is drawn, and the pace."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fedwave.errors import ConfigError
from fedwave.server import BatteryReport, Eafl, Outcome, PlannerState
from fedwave.testing.planner import NUM_BLOCKS, NUM_DEVICES
from tests.server.test_long_term import CELL, EVERYBODY, outcome, plan_of, reports


def after(
    planner: Eafl, state: PlannerState, k: int, who: Any, spent_j: Any, contribution: Any, busy_s: Any = 1.0
) -> PlannerState:
    found = outcome(spent_j)
    assert found.costs is not None
    times = np.broadcast_to(np.asarray(busy_s, dtype=float), (NUM_DEVICES,))
    timed = replace(found, costs=replace(found.costs, compute_time_s=times))
    return planner.after(k, reports(contribution, who), plan_of(), timed, state)


def tried(planner: Eafl, contribution: Any, spent_j: Any = 0.0, busy_s: Any = 1.0) -> PlannerState:
    """A state in which everybody took part in the first round."""
    return after(planner, planner.initial_state(), 0, EVERYBODY, spent_j, contribution, busy_s)


def by_contribution(**options: Any) -> Eafl:
    return Eafl(CELL, utility="contribution", pace_percent=100.0, **options)


def test_the_score_is_oorts_with_the_battery_in_the_reward_by_hand() -> None:
    planner = by_contribution(total_j=10.0, f=0.25)
    worth = np.array([8.0, 4.0, 2.0, 0.0, -3.0, 8.0, 8.0, 8.0, 8.0])
    spent = np.array([5.0, 0.0, 10.0, 12.0, 1.0, 2.0, 2.0, 2.0, 2.0])
    state = tried(planner, worth, spent)
    left = [0.5, 1.0, 0.0, 0.0, 0.9, 0.8, 0.8, 0.8, 0.8]
    np.testing.assert_allclose(planner.power(state), left)
    reward = 0.25 * np.maximum(worth, 0.0) / 8.0 + 0.75 * np.array(left)
    # 95 % of nine devices: the ninth value, so nothing is cut off; the least is 0, the range the largest.
    expected = reward / reward.max() + np.sqrt(0.1 * np.log(5) / 1.0)
    np.testing.assert_allclose(planner.scores(4, EVERYBODY, state), expected, rtol=1e-12)
    assert planner.ask(4, state).tolist() != []
    assert not {2, 3} & set(planner.ask(4, state).tolist())  # nothing left


def test_a_reward_above_the_quantile_counts_as_much_as_it() -> None:
    planner = by_contribution(f=1.0)
    state = tried(planner, 1.0)
    who = np.tile(EVERYBODY, 5)  # 45 devices, as it were: the 43rd reward is the clip
    utility = np.concatenate([np.linspace(1.0, 2.0, 43), [50.0, 100.0]])
    many = {**state, "utility": utility, "last_round": np.ones(45, np.int64), "duration_s": np.ones(45)}
    many["spent_j"] = np.zeros(45)
    score = planner.scores(0, np.arange(len(who)), many)
    least = 0.999 * 0.01
    np.testing.assert_allclose(score, (np.minimum(utility, 2.0) / 100.0 - least) / (1.0 - least), rtol=1e-12)


def test_who_has_not_been_heard_of_for_long_has_a_bonus_and_the_slow_are_marked_down() -> None:
    planner = by_contribution()
    busy = np.full(NUM_DEVICES, 1.0)
    busy[8] = 4.0
    state = tried(planner, 5.0, busy_s=busy)
    state = after(planner, state, 7, [0], 0.0, 5.0)
    score = planner.scores(9, EVERYBODY, state)
    assert score[1] - score[0] == pytest.approx(np.sqrt(0.1 * np.log(10)) * (1.0 - 1.0 / np.sqrt(8.0)))
    assert score[8] == pytest.approx(score[1])  # all durations are preferred
    paced = Eafl(CELL, utility="contribution", pace_percent=50.0)
    hurried = paced.scores(9, EVERYBODY, {**state, "pace_percent": np.array([50.0])})
    assert hurried[8] == pytest.approx(score[8] * (1.0 / 4.0) ** 2)
    np.testing.assert_allclose(hurried[:8], score[:8])


def test_utility_is_samples_times_loss_unless_contributions_are_asked_for() -> None:
    told = replace(reports(-3.0, [1, 4]), loss=np.array([2.0, -0.5]))
    state = Eafl(CELL).after(0, told, plan_of(), outcome(1.0), Eafl(CELL).initial_state())
    np.testing.assert_allclose(state["utility"][[1, 4]], told.num_samples * np.array([2.0, 0.5]))
    assert np.flatnonzero(state["utility"]).tolist() == [1, 4]
    assert state["last_round"].tolist() == [0, 1, 0, 0, 1, 0, 0, 0, 0]
    other = by_contribution().after(0, told, plan_of(), outcome(1.0), Eafl(CELL).initial_state())
    assert not other["utility"].any()  # a negative contribution is worth nothing


def test_new_devices_have_their_share_until_all_are_tried_then_the_best_are_drawn() -> None:
    planner = by_contribution(num_asked=4, exploration=0.5, decay=1.0, min_exploration=0.0, f=1.0)
    state = after(planner, planner.initial_state(), 0, [0, 1, 2, 3, 4], 0.0, [9.0, 0.1, 9.0, 0.1, 0.1])
    for k in range(1, 30):
        asked = planner.ask(k, state).tolist()
        assert len(set(asked) & {5, 6, 7, 8}) == 2
        assert set(asked) - {5, 6, 7, 8} == {0, 2}
    assert len({tuple(planner.ask(k, state)) for k in range(1, 30)}) > 3  # drawn anew in every round
    assert planner.ask(3, state).tolist() == planner.ask(3, state).tolist()
    everyone = tried(planner, np.arange(1.0, 10.0))
    assert planner.ask(0, everyone).tolist() == [5, 6, 7, 8]  # round 1: no bonus, and no ties
    first = Eafl(CELL).ask(0, Eafl(CELL).initial_state())
    assert len(first) == NUM_BLOCKS


def test_the_share_of_new_devices_decays_to_its_floor() -> None:
    planner = by_contribution(num_asked=4, exploration=1.0, decay=0.5, min_exploration=0.25)
    state = after(planner, planner.initial_state(), 0, [0, 1, 2, 3, 4], 0.0, 5.0)
    counts = [len(set(planner.ask(k, state).tolist()) & {5, 6, 7, 8}) for k in range(4)]
    assert counts == [2, 1, 1, 1]


def test_scores_near_the_last_chosen_one_may_be_drawn_in_its_place() -> None:
    planner = by_contribution(num_asked=1, exploration=0.0, min_exploration=0.0, f=1.0)
    worth = np.array([10.0, 9.9, 9.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0])
    state = tried(planner, worth)
    score = planner.scores(1, EVERYBODY, state)
    assert score[1] > 0.95 * score[0] > score[2]
    assert {int(planner.ask(k, state)[0]) for k in range(1, 40)} == {0, 1}


def test_the_pace_is_relaxed_where_utility_is_flat_and_tightened_where_it_jumps() -> None:
    planner = Eafl(CELL, utility="contribution", pace_percent=30.0, pace_step=5.0, pace_rounds=2)

    def pace(contributions: list[float]) -> list[float]:
        state, found = planner.initial_state(), []
        for k, worth in enumerate(contributions):
            state = after(planner, state, k, EVERYBODY, 0.0, worth)
            found.append(float(state["pace_percent"][0]))
        return found

    assert pace([10.0, 10.0, 10.0, 11.0, 9.0, 11.0]) == [30.0, 30.0, 30.0, 35.0, 35.0, 40.0]
    assert pace([1.0, 1.0, 5.0, 7.0]) == [30.0, 30.0, 30.0, 25.0]
    assert pace([1.0, 1.0, 2.0, 2.0]) == [30.0, 30.0, 30.0, 30.0]


def test_batteries_are_read_as_last_heard_and_taken_for_full_before() -> None:
    planner = by_contribution(by="battery")
    state = planner.initial_state()
    assert planner.power(state).tolist() == [1.0] * NUM_DEVICES
    report = BatteryReport(
        charge_j=np.linspace(0.0, 8.0, NUM_DEVICES),
        capacity_j=np.full(NUM_DEVICES, 8.0),
        is_awake=np.ones(NUM_DEVICES, dtype=bool),
        harvested_j=np.zeros(NUM_DEVICES),
        clock_s=1.0,
    )
    told: Outcome = replace(outcome(1.0), battery=report)
    state = planner.after(0, reports(), plan_of(), told, state)
    np.testing.assert_allclose(planner.power(state), np.linspace(0.0, 1.0, NUM_DEVICES))
    assert 0 not in planner.ask(1, state).tolist()


def test_what_cannot_be_is_refused() -> None:
    for wrong in ({"total_j": 0.0}, {"num_asked": -1}, {"f": 1.5}, {"decay": -0.1}):
        with pytest.raises(ConfigError, match="eafl needs total_j > 0, num_asked >= 0, and f"):
            Eafl(CELL, **wrong)
    for wrong in ({"pace_percent": 0.0}, {"pace_step": -1.0}, {"pace_rounds": 0}):
        with pytest.raises(ConfigError, match="eafl needs pace_percent > 0"):
            Eafl(CELL, **wrong)
