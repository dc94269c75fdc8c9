"""Planning for devices that come and go, and that tell of their radio themselves."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fedwave.errors import ProblemError
from fedwave.selection import TopContribution, Uniform
from fedwave.server import CellReports, Chooser, PolicyPlanner, Reports
from fedwave.server.exclusion import exclude, excluded_until, still_excluded
from fedwave.server.real_devices import reachable, told_of_fleet
from fedwave.wireless.channel_draw import ChannelDraw
from fedwave.wireless.fleet import Fleet
from tests.server.planners import cell_planner

N, BLOCKS = 6, 2
RNG = np.random.default_rng(0)
GAIN = RNG.exponential(1e-11, (N, BLOCKS))
TRUE_FLEET = Fleet(
    max_power_w=RNG.uniform(0.1, 0.3, N),
    max_frequency_hz=RNG.uniform(0.5e9, 2e9, N),
    capacitance=np.full(N, 1e-28),
    cycles_per_sample=RNG.uniform(1e6, 1e7, N),
)
SAMPLES = RNG.integers(5, 30, N)
NO_IDEA = Fleet(np.ones(N), np.ones(N), np.ones(N), np.ones(N))


def reports_of(devices: list[int]) -> Reports:
    at = np.array(devices)
    return Reports(
        device_index=at,
        contribution=10.0 + at,
        loss=np.ones(len(at)),
        num_samples=SAMPLES[at],
        gradient_norms=np.ones((len(at), 1)),
    )


def told(devices: list[int], gain: np.ndarray = GAIN) -> CellReports:
    at = np.array(devices)
    return CellReports(
        device_index=at,
        channel_gain=gain[at],
        max_power_w=TRUE_FLEET.max_power_w[at],
        max_frequency_hz=TRUE_FLEET.max_frequency_hz[at],
        capacitance=TRUE_FLEET.capacitance[at],
        cycles_per_sample=TRUE_FLEET.cycles_per_sample[at],
    )


def test_a_planner_that_was_told_plans_as_one_that_knew() -> None:
    devices = [0, 2, 3, 5]
    knew, reports = cell_planner(TRUE_FLEET, SAMPLES, num_blocks=BLOCKS), reports_of(devices)
    channel = ChannelDraw(GAIN, np.zeros(BLOCKS))
    expected, _ = knew.plan(0, reports, channel, knew.initial_state())
    stranger = reachable(
        cell_planner(NO_IDEA, np.ones(N, dtype=np.int64), num_blocks=BLOCKS),
        present=np.array(devices),
        num_samples=SAMPLES,
    )
    planner = told_of_fleet(stranger, told(devices))
    got, _ = planner.plan(0, reports, told(devices).channel(N, np.zeros(BLOCKS)), planner.initial_state())
    assert len(expected.selected) == BLOCKS
    assert got.selected.tolist() == expected.selected.tolist()
    assert got.allocation is not None
    assert expected.allocation is not None
    for name in ("block_of_device", "transmit_power_w"):
        np.testing.assert_array_equal(getattr(got.allocation, name), getattr(expected.allocation, name))
    at = np.array(devices)
    np.testing.assert_array_equal(
        got.allocation.cpu_frequency_hz[at], expected.allocation.cpu_frequency_hz[at]
    )


def test_gains_that_are_the_same_on_all_blocks_need_one_number() -> None:
    channel = told([1, 4], GAIN[:, :1]).channel(N, np.zeros(BLOCKS))
    assert channel.channel_gain.tolist() == [0.0, GAIN[1, 0], 0.0, 0.0, GAIN[4, 0], 0.0]
    with pytest.raises(ProblemError, match="a gain for each of the 3 blocks, or one for all, got 2"):
        told([1]).channel(N, np.zeros(3))


def test_only_those_present_are_asked_and_chosen() -> None:
    present = np.array([1, 3, 4])
    planner = reachable(
        PolicyPlanner(Chooser(Uniform(2), SAMPLES, seed=0)), present=present, num_samples=SAMPLES
    )
    asked = [set(planner.ask(k, planner.initial_state()).tolist()) for k in range(40)]
    assert all(len(few) == 2 and few <= {1, 3, 4} for few in asked)
    assert set.union(*asked) == {1, 3, 4}  # each of them gets its turn
    everyone = PolicyPlanner(Chooser(Uniform(2), SAMPLES, seed=0, everyone_computes=True))
    everyone = reachable(everyone, present=present, num_samples=SAMPLES)
    assert everyone.ask(0, everyone.initial_state()).tolist() == [1, 3, 4]


def test_with_everybody_present_the_draws_are_those_of_a_simulation() -> None:
    planner = PolicyPlanner(Chooser(Uniform(3), SAMPLES, seed=7))
    all_there = reachable(planner, present=np.arange(N), num_samples=SAMPLES)
    for k in range(10):
        state = planner.initial_state()
        np.testing.assert_array_equal(planner.ask(k, state), all_there.ask(k, state))


def test_a_planner_of_ones_own_stays_as_it_is() -> None:
    class Own:
        pass

    own = Own()
    assert reachable(own, present=np.array([0]), num_samples=SAMPLES) is own  # type: ignore[arg-type]
    assert told_of_fleet(own, told([0])) is own  # type: ignore[arg-type]


def test_exclusions_last_as_long_as_they_should_and_survive_planning() -> None:
    planner = PolicyPlanner(Chooser(TopContribution(2), SAMPLES, seed=0))
    state = planner.initial_state()
    assert excluded_until(state, N).tolist() == [0] * N
    state = exclude(state, [2, 5], until=7, num_devices=N)
    state = exclude(state, [5], until=9, num_devices=N)
    _, after = planner.plan(0, reports_of([0, 1]), None, state)
    assert excluded_until(after, N).tolist() == [0] * N  # a planner knows nothing of it
    assert excluded_until(still_excluded(state, after), N).tolist() == [0, 0, 7, 0, 0, 9]
    assert still_excluded(planner.initial_state(), after) is after
    assert "history.times_selected" in still_excluded(state, after)


def test_replacing_the_present_devices_does_not_change_the_planner() -> None:
    planner = cell_planner(NO_IDEA, SAMPLES, num_blocks=BLOCKS)
    before = replace(planner)
    reachable(planner, present=np.array([0]), num_samples=SAMPLES)
    told_of_fleet(planner, told([0]))
    assert planner.fleet is before.fleet
    assert planner.chooser is before.chooser
