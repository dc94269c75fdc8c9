"""The part that planners share: random numbers of their own for each question."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from fedwave.errors import ProblemError, RunError
from fedwave.rng import Stream, generator
from fedwave.selection import Candidates, History, RoundResult
from fedwave.server import Outcome, PolicyRunner, Reports, RoundCosts
from fedwave.server.policy_runner import history_from_state, history_to_state, remember
from fedwave.units import IntArray
from tests.selection.oort import Oort


@dataclass(frozen=True)
class DrawsTwice:
    """Asks at random and selects at random, and notes what it met."""

    num_selected: int = 2
    needs_reports: bool = False
    luck: dict[str, list[float]] = field(default_factory=lambda: {"ask": [], "select": []})
    met: list[Candidates] = field(default_factory=list)

    def ask(self, candidates: Candidates, *, rng: np.random.Generator) -> IntArray:
        self.luck["ask"].append(rng.random())
        self.met.append(candidates)
        return np.array([1, 3, 4])

    def select(self, candidates: Candidates, *, rng: np.random.Generator) -> IntArray:
        self.luck["select"].append(rng.random())
        self.met.append(candidates)
        return candidates.device_index[:2]


HISTORY = History(
    times_selected=np.array([0, 1, 2, 3, 4]),
    last_selected=np.array([-1, 1, 2, 3, 4]),
    last_contribution=np.array([np.nan, 1.0, 2.0, 3.0, 4.0]),
    last_loss=np.array([np.nan, 10.0, 20.0, 30.0, 40.0]),
)
STATE = history_to_state(HISTORY)
SAMPLES = np.array([5, 6, 7, 8, 9])


def reports(*device_index: int) -> Reports:
    index = np.array(device_index)
    return Reports(
        device_index=index,
        contribution=index + 0.5,
        loss=index + 0.25,
        num_samples=SAMPLES[index],
        gradient_norms=np.ones((len(index), 1)),
    )


def test_asking_and_selecting_meet_independent_random_numbers_of_the_seed_and_round() -> None:
    for seed in (7, 8):
        for round_index in (0, 1, 5):
            policy = DrawsTwice()
            runner = PolicyRunner(policy, SAMPLES, seed)
            asked_devices = runner.ask(round_index, STATE)
            runner.select(round_index, asked_devices, reports(1, 3, 4), STATE)
            asked = generator(seed, Stream.SELECTION, round_index).random()
            selected = generator(seed, Stream.SELECTION, round_index, 1).random()
            assert policy.luck == {"ask": [asked], "select": [selected]}  # each is called once
            assert asked != selected


def test_a_policy_is_asked_about_everybody_before_anything_is_reported() -> None:
    policy = DrawsTwice()
    assert PolicyRunner(policy, SAMPLES, 0).ask(0, STATE).tolist() == [1, 3, 4]
    [everybody] = policy.met
    assert everybody.device_index.tolist() == [0, 1, 2, 3, 4]
    assert everybody.num_samples is SAMPLES
    assert everybody.history.times_selected.tolist() == HISTORY.times_selected.tolist()
    assert everybody.history.last_loss.tolist()[1:] == HISTORY.last_loss.tolist()[1:]
    assert everybody.contribution is None
    assert everybody.loss is None


def test_a_policy_selects_among_those_that_were_asked_and_have_reported() -> None:
    policy = DrawsTwice()
    # 0 and 2 compute too, since everybody does; 3 was asked and did not report.
    runner = PolicyRunner(policy, SAMPLES, 0, everyone_computes=True)
    chosen = runner.select(0, runner.ask(0, STATE), reports(0, 1, 2, 4), STATE)
    assert len(policy.luck["ask"]) == 1
    assert chosen.tolist() == [1, 4]
    met = policy.met[-1]
    assert met.device_index.tolist() == [1, 4]
    assert met.num_samples.tolist() == [6, 9]
    assert met.history.times_selected.tolist() == [1, 4]
    assert met.history.last_loss.tolist() == [10.0, 40.0]
    assert met.contribution is not None
    assert met.loss is not None
    assert met.contribution.tolist() == [1.5, 4.5]
    assert met.loss.tolist() == [1.25, 4.25]


def test_everybody_computes_if_so_set() -> None:
    runner = PolicyRunner(DrawsTwice(), SAMPLES, 0, everyone_computes=True)
    assert runner.num_devices == 5
    assert runner.ask(0, STATE).tolist() == [0, 1, 2, 3, 4]


# What the server remembers, as arrays -----------------------------------------------------------------------

MEMORY = History(
    times_selected=np.array([0, 3, 1]),
    last_selected=np.array([-1, 6, 2]),
    last_contribution=np.array([np.nan, 1.5, -2.0]),
    last_loss=np.array([np.nan, 0.25, 4.0]),
)
NAMES = ("times_selected", "last_selected", "last_contribution", "last_loss")


def test_a_history_comes_back_from_its_state() -> None:
    state = history_to_state(MEMORY)
    assert list(state) == [f"history.{name}" for name in NAMES]
    back = history_from_state({**state, "other": np.zeros(1)}, 3)
    for name in NAMES:
        np.testing.assert_array_equal(getattr(back, name), getattr(MEMORY, name))
        assert getattr(back, name).dtype == getattr(MEMORY, name).dtype


@pytest.mark.parametrize("name", NAMES)
def test_a_column_that_is_missing_or_of_another_fleet_is_named(name: str) -> None:
    state = history_to_state(MEMORY)
    with pytest.raises(RunError, match=rf"must hold history.{name} for 3 devices, got \(2, 3\)\. It belongs"):
        history_from_state({**state, f"history.{name}": np.zeros((2, 3))}, 3)
    del state[f"history.{name}"]
    with pytest.raises(RunError, match=rf"must hold history.{name} for 3 devices, got None\. It belongs"):
        history_from_state(state, 3)


def test_a_round_adds_to_the_memory_and_leaves_the_old_one_alone() -> None:
    before = copy.deepcopy(MEMORY)
    told = Reports(
        device_index=np.array([0, 2]),
        contribution=np.array([7.0, 8.0]),
        loss=np.array([0.5, 0.75]),
        num_samples=np.array([4, 4]),
        gradient_norms=np.ones((2, 1)),
    )
    after = remember(MEMORY, 9, told, np.array([2]))
    assert after.times_selected.tolist() == [0, 3, 2]
    assert after.last_selected.tolist() == [-1, 6, 9]
    assert after.last_contribution.tolist() == [7.0, 1.5, 8.0]
    assert after.last_loss.tolist() == [0.5, 0.25, 0.75]
    for name in NAMES:
        np.testing.assert_array_equal(getattr(MEMORY, name), getattr(before, name))


# A policy with a state of its own ---------------------------------------------------------------------------


def arrived(selected: list[int], costs: RoundCosts | None = None) -> Outcome:
    return Outcome(np.array(selected), np.zeros(len(selected), dtype=np.int64), costs)


def test_a_policys_own_state_is_kept_beside_the_history_and_handed_to_it() -> None:
    runner = PolicyRunner(Oort(2), SAMPLES, seed=3)
    state = runner.initial_state()
    assert [name for name in state if not name.startswith("history.")] == [
        "policy.utility",
        "policy.duration_s",
        "policy.last_round",
        "policy.exploration",
    ]
    asked = runner.ask(4, state)
    assert len(asked) == 2
    told = reports(*asked.tolist())
    assert runner.select(4, asked, told, state).tolist() == asked.tolist()
    after = runner.after(4, told, asked, arrived(asked.tolist()), {**state, "other": np.zeros(1)})
    assert after["policy.last_round"][asked].tolist() == [4, 4]
    assert after["policy.utility"][asked].tolist() == (SAMPLES[asked] * told.loss).tolist()
    assert after["policy.exploration"].tolist() == [0.9 * 0.98]
    assert after["history.times_selected"][asked].tolist() == [1, 1]
    assert "other" in after
    assert state["policy.exploration"].tolist() == [0.9]  # the old state is left alone
    # Those that were tried are known now: the next round meets what this one has left.
    again = runner.ask(5, {**after, "policy.exploration": np.array([0.0])})
    assert set(again) == set(asked)


def test_a_policy_hears_how_long_everybody_was_busy_and_what_it_cost() -> None:
    zeros = np.zeros(5)
    costs = RoundCosts(
        compute_energy_j=np.arange(5.0),
        compute_time_s=np.full(5, 8.0),
        report_energy_j=zeros,
        report_time_s=np.full(5, 0.5),
        upload_energy_j=np.full(5, 10.0),
        upload_time_s=np.array([0.0, 2.0, 0.0, 0.0, 4.0]),
        idle_energy_j=zeros,
        idle_time_s=np.full(5, 99.0),
        downlink_time_s=np.full(5, 0.25),
        delay_s=13.0,
    )
    heard: list[RoundResult] = []

    class Hearing(Oort):
        def after(self, result: RoundResult) -> Any:
            heard.append(result)
            return super().after(result)

    runner = PolicyRunner(Hearing(2), SAMPLES, seed=3)
    state = runner.initial_state()
    after = runner.after(7, reports(1, 4), np.array([1, 4]), arrived([4], costs), state)
    [result] = heard
    assert (result.round_index, result.delay_s) == (7, 13.0)
    assert (result.selected.tolist(), result.received.tolist()) == ([1, 4], [4])
    assert result.busy_time_s is not None
    assert result.busy_time_s.tolist() == [8.75, 10.75, 8.75, 8.75, 12.75]
    assert result.energy_j is not None
    assert result.energy_j.tolist() == [10.0, 11.0, 12.0, 13.0, 14.0]
    assert result.reported.device_index.tolist() == [1, 4]
    assert np.isnan(after["policy.duration_s"][[0, 2, 3]]).all()
    assert after["policy.duration_s"][[1, 4]].tolist() == [10.75, 12.75]
    runner.after(7, reports(1, 4), np.array([1, 4]), arrived([4]), state)
    assert (heard[1].busy_time_s, heard[1].energy_j, heard[1].delay_s) == (None, None, None)


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"utility": np.zeros(5)},
        {"utility": np.zeros(4), "duration_s": np.zeros(5)},
        {"utility": np.zeros(5, dtype=np.int64), "duration_s": np.zeros(5)},
    ],
)
def test_a_state_that_could_not_be_resumed_is_refused_in_its_first_round(wrong: dict[str, Any]) -> None:
    class Changing(DrawsTwice):
        def initial_state(self, num_devices: int) -> Any:
            return {"utility": np.zeros(num_devices), "duration_s": np.zeros(num_devices)}

        def after(self, result: RoundResult) -> Any:
            return wrong

    runner = PolicyRunner(Changing(), SAMPLES, seed=0)
    with pytest.raises(ProblemError, match="Changing.after must return arrays of the names, shapes and"):
        runner.after(0, reports(1), np.array([1]), arrived([1]), runner.initial_state())


def test_a_policy_without_a_state_has_the_history_alone() -> None:
    runner = PolicyRunner(DrawsTwice(), SAMPLES, seed=0)
    assert list(runner.initial_state()) == [f"history.{name}" for name in NAMES]
