"""The bases of a planner of one's own: what they leave as it is, and what they pass on."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from fedwave.selection import TopContribution
from fedwave.server import PlannerAround, PlannerDefaults, PolicyPlanner, PolicyRunner
from tests.server.radios import CONTRIBUTION, GREEDY_RADIO, all_arrived, play, radio_planner

SAMPLES = np.resize(np.array([4, 8]), 9)


def test_defaults_remember_nothing_and_plan_alike_for_all_devices() -> None:
    planner = PlannerDefaults()
    assert planner.initial_state() == {}
    state = {"own": np.zeros(2)}
    inner = play(PolicyPlanner(PolicyRunner(TopContribution(2), SAMPLES, 0)), CONTRIBUTION)
    assert planner.after(3, inner.reports, inner.plan, all_arrived(inner.plan), state) is state
    assert planner.with_devices(present=np.array([1]), num_samples=SAMPLES) is planner
    assert planner.max_models == 256
    assert planner.num_blocks is None
    assert planner.describe() == {}


def test_a_planner_around_another_passes_everything_on() -> None:
    inner = radio_planner(GREEDY_RADIO, method="greedy")
    around = PlannerAround(inner.planner)
    one, other = (play(p, [5.0, 4.0], 0, inner.channel) for p in (inner.planner, around))
    assert one.asked.tolist() == other.asked.tolist()
    assert one.allocation.transmit_power_w.tolist() == other.allocation.transmit_power_w.tolist()
    for name, values in one.state.items():
        np.testing.assert_array_equal(other.state[name], values)
    assert around.max_models == inner.planner.max_models
    assert around.num_blocks == inner.planner.num_blocks == len(inner.channel.interference_w)
    assert around.describe() == inner.planner.describe()
    assert around.describe()["method"] == "greedy"


@dataclass(frozen=True, eq=False)
class Counting(PlannerAround):
    """Around a planner that forgets what it does not know."""

    step: int = 1


@dataclass(frozen=True, eq=False)
class Forgetful(PlannerAround):
    def after(self, *arguments: object) -> dict[str, np.ndarray]:
        return {"inner": np.ones(1)}


def test_entries_that_the_inner_planner_does_not_know_are_kept() -> None:
    inner = PolicyPlanner(PolicyRunner(TopContribution(2), SAMPLES, 0))
    played = play(inner, CONTRIBUTION)
    state = {"own": np.zeros(2), "inner": np.zeros(1)}
    after = PlannerAround(Forgetful(inner)).after(
        0, played.reports, played.plan, all_arrived(played.plan), state
    )
    assert {name: values.tolist() for name, values in after.items()} == {"own": [0.0, 0.0], "inner": [1.0]}


def test_devices_that_are_present_reach_the_inner_planner_and_the_rest_stays() -> None:
    inner = PolicyPlanner(PolicyRunner(TopContribution(2), SAMPLES, 0))
    there = Counting(inner, step=3).with_devices(present=np.array([1, 4]), num_samples=2 * SAMPLES)
    assert isinstance(there, Counting)
    assert there.step == 3
    assert there.ask(0, there.initial_state()).tolist() == [1, 4]
    assert isinstance(there.planner, PolicyPlanner)
    assert there.planner.runner.num_samples.tolist() == (2 * SAMPLES).tolist()
    assert replace(there).planner is there.planner
