"""Planning for devices that come and go, and that tell of their radio themselves."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fedwave.errors import ProblemError
from fedwave.selection import TopContribution, Uniform
from fedwave.server import CellReports, PlannerDefaults, PolicyPlanner, PolicyRunner, Reports
from fedwave.server.exclusion import exclude, excluded_until, still_excluded
from fedwave.wireless.fleet import Fleet
from fedwave.wireless.terms import ChannelDraw
from tests.server.planners import cell_planner
from tests.server.radios import all_arrived

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
NO_CHANNEL = ChannelDraw(np.zeros((N, BLOCKS)), np.zeros(BLOCKS))


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
    asked = np.array(devices)
    expected = knew.plan(0, asked, reports, channel, knew.initial_state())
    stranger = cell_planner(NO_IDEA, np.ones(N, dtype=np.int64), num_blocks=BLOCKS)
    planner = stranger.with_devices(present=asked, num_samples=SAMPLES, told=told(devices))
    told_channel = told(devices).channel(N, NO_CHANNEL)
    got = planner.plan(0, asked, reports, told_channel, planner.initial_state())
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
    channel = told([1, 4], GAIN[:, :1]).channel(N, ChannelDraw(np.zeros(N), np.zeros(BLOCKS)))
    assert channel.channel_gain.tolist() == [0.0, GAIN[1, 0], 0.0, 0.0, GAIN[4, 0], 0.0]
    with pytest.raises(ProblemError, match="a gain for each of the 3 blocks, or one for all, got 2"):
        told([1]).channel(N, ChannelDraw(np.zeros((N, 3)), np.zeros(3)))


@pytest.mark.parametrize("per_block", [True, False])
def test_of_those_that_say_nothing_the_server_takes_what_it_knows(per_block: bool) -> None:
    known = ChannelDraw(2.0 * GAIN if per_block else 2.0 * GAIN[:, 0], np.array([1e-15, 2e-15]))
    channel = told([1, 4]).channel(N, known)
    expected = 2.0 * (GAIN if per_block else np.repeat(GAIN[:, :1], BLOCKS, axis=1))
    expected[[1, 4]] = GAIN[[1, 4]]
    np.testing.assert_array_equal(channel.channel_gain, expected)
    np.testing.assert_array_equal(channel.interference_w, known.interference_w)
    one_gain = told([1, 4], GAIN[:, :1]).channel(N, known).channel_gain
    np.testing.assert_array_equal(one_gain[4], GAIN[4, [0] * BLOCKS] if per_block else GAIN[4, 0])
    assert one_gain.shape == known.channel_gain.shape
    measured_once = ChannelDraw(
        known.channel_gain, np.array([1e-15])
    )  # one interference stands for all blocks
    np.testing.assert_array_equal(told([1, 4]).channel(N, measured_once).channel_gain, expected)


def test_some_of_the_reports_are_those_of_some_devices() -> None:
    some = told([0, 2, 5]).of(np.array([2, 3, 5]))
    assert some is not None
    assert some.device_index.tolist() == [2, 5]
    np.testing.assert_array_equal(some.channel_gain, GAIN[[2, 5]])
    assert told([0, 2]).of(np.array([1])) is None
    reports = reports_of([0, 2, 5]).of(np.array([5]))
    assert (reports.device_index.tolist(), reports.contribution.tolist()) == ([5], [15.0])
    assert reports.gradient_norms.shape == (1, 1)


def test_only_those_present_are_asked_and_chosen() -> None:
    present = np.array([1, 3, 4])
    planner = PolicyPlanner(PolicyRunner(Uniform(2), SAMPLES, seed=0))
    planner = planner.with_devices(present=present, num_samples=SAMPLES)
    asked = [set(planner.ask(k, planner.initial_state()).tolist()) for k in range(40)]
    assert all(len(few) == 2 and few <= {1, 3, 4} for few in asked)
    assert set.union(*asked) == {1, 3, 4}  # each of them gets its turn
    everyone = PolicyPlanner(PolicyRunner(Uniform(2), SAMPLES, seed=0, everyone_computes=True))
    everyone = everyone.with_devices(present=present, num_samples=SAMPLES)
    assert everyone.ask(0, everyone.initial_state()).tolist() == [1, 3, 4]


def test_with_everybody_present_the_draws_are_those_of_a_simulation() -> None:
    planner = PolicyPlanner(PolicyRunner(Uniform(3), SAMPLES, seed=7))
    all_there = planner.with_devices(present=np.arange(N), num_samples=SAMPLES)
    for k in range(10):
        state = planner.initial_state()
        np.testing.assert_array_equal(planner.ask(k, state), all_there.ask(k, state))


def test_a_planner_of_ones_own_stays_as_it_is() -> None:
    own = PlannerDefaults()
    assert own.with_devices(present=np.array([0]), num_samples=SAMPLES, told=told([0])) is own


def test_a_cpu_below_the_cells_floor_is_planned_with_its_own_limit() -> None:
    known = replace(TRUE_FLEET, min_frequency_hz=np.full(N, 4e8))
    slow = replace(told([0, 1]), max_frequency_hz=np.array([1e8, 9e8]))
    fleet = slow.fleet(known)
    assert fleet.min_frequency_hz.tolist() == [1e8, *[4e8] * 5]
    costly = replace(known, static_power_w=np.full(N, 0.1), joules_per_cycle=np.full(N, 1e-10))
    assert slow.fleet(costly).static_power_w.tolist() == [0.1] * N  # devices do not tell: the server knows
    assert slow.fleet(costly).joules_per_cycle.tolist() == [1e-10] * N
    planner = cell_planner(known, SAMPLES, num_blocks=BLOCKS)
    planner = planner.with_devices(present=np.array([0, 1]), num_samples=SAMPLES, told=slow)
    at = np.array([0, 1])
    plan = planner.plan(0, at, reports_of([0, 1]), slow.channel(N), planner.initial_state())
    assert plan.allocation is not None
    assert plan.allocation.cpu_frequency_hz[0] == 1e8
    assert 4e8 <= plan.allocation.cpu_frequency_hz[1] <= 9e8


def test_without_a_receivers_measurement_there_is_no_interference() -> None:
    assert told([1]).channel(N).interference_w.tolist() == [0.0] * BLOCKS
    alike = told([1, 2], GAIN[:, :1])  # one gain for all blocks: the planner knows how many there are
    planner = cell_planner(TRUE_FLEET, SAMPLES, num_blocks=BLOCKS)
    plan = planner.plan(0, np.array([1, 2]), reports_of([1, 2]), alike.channel(N), planner.initial_state())
    assert plan.allocation is not None
    assert sorted(plan.allocation.block_of_device[plan.selected].tolist()) == [0, 1]


def test_exclusions_last_as_long_as_they_should_and_survive_planning() -> None:
    planner = PolicyPlanner(PolicyRunner(TopContribution(2), SAMPLES, seed=0))
    state = planner.initial_state()
    assert excluded_until(state, N).tolist() == [0] * N
    state = exclude(state, [2, 5], until=7, num_devices=N)
    state = exclude(state, [5], until=9, num_devices=N)
    reports = reports_of([0, 1])
    plan = planner.plan(0, np.array([0, 1]), reports, None, state)
    after = planner.after(0, reports, plan, all_arrived(plan), state)
    assert excluded_until(after, N).tolist() == [0, 0, 7, 0, 0, 9]  # what it does not know it keeps
    forgetful = {"own": np.zeros(1)}  # another planner may return its own entries alone
    assert excluded_until(still_excluded(state, forgetful), N).tolist() == [0, 0, 7, 0, 0, 9]
    assert "own" in still_excluded(state, forgetful)
    assert still_excluded(planner.initial_state(), forgetful) is forgetful


def test_replacing_the_present_devices_does_not_change_the_planner() -> None:
    planner = cell_planner(NO_IDEA, SAMPLES, num_blocks=BLOCKS)
    before = replace(planner)
    planner.with_devices(present=np.array([0]), num_samples=SAMPLES, told=told([0]))
    assert planner.fleet is before.fleet
    assert planner.runner is before.runner
