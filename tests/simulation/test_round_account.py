"""A round's phases in turns, and the joules that follow, by hand. CellWorld's own tests cover the rest."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from fedwave.simulation.round_account import Timeline, round_costs
from fedwave.wireless.phases import ReportPhase
from tests.simulation.radio_by_hand import world

IN_TURNS = {
    "broadcast_s": 1.0,
    "compute_time_s": np.array([2.0, 4.0, 0.0]),
    "reporting": ReportPhase(np.array([0.0, 1.0, 0.0]), np.array([1.0, 2.0, 0.0]), 3.0),
    "slot_time_s": np.array([5.0, 2.0, 0.0]),
    "slot_start_s": np.array([0.0, 5.0, 0.0]),
}


def test_phases_follow_one_another_and_slots_begin_in_turns():
    timeline = Timeline(**IN_TURNS, deadline_s=None)
    assert timeline.reports_start_s == 5.0
    assert timeline.uploads_start_s == 8.0
    assert timeline.slots_start_s.tolist() == [8.0, 13.0, 8.0]
    assert timeline.end_s == 15.0
    assert Timeline(**{**IN_TURNS, "slot_start_s": None}, deadline_s=None).end_s == 13.0
    assert Timeline(**IN_TURNS, deadline_s=9.0).end_s == 9.0


@pytest.mark.parametrize(
    ("deadline_s", "upload_s", "idle_s"),
    [
        (None, [5, 2, 0], [15 - 9, 15 - 9, 15]),
        (14.0, [5, 1, 0], [14 - 9, 14 - 8, 14]),  # cut off in the second turn
        (12.0, [4, 0, 0], [12 - 8, 12 - 7, 12]),  # and in the first
    ],
)
def test_a_deadline_cuts_the_turn_that_it_meets(deadline_s, upload_s, idle_s):
    place = world(num_devices=3)
    costs = round_costs(
        Timeline(**IN_TURNS, deadline_s=deadline_s),
        cell=place.cell,
        terms=place.terms,
        listens=np.array([True, True, False]),
        sends=np.array([0, 1]),
        transmit_power_w=np.array([3.0, 7.0, 1.0]),
        cpu_frequency_hz=np.array([2.0, 1.0, 1.0]),
        workload_cycles=np.array([4.0, 4.0, 0.0]),
        idle_power_w=0.5,
    )
    assert_allclose(costs.upload_time_s, upload_s)
    assert_allclose(costs.upload_energy_j, np.array([3.0, 7.0, 1.0]) * upload_s)
    assert_allclose(costs.idle_time_s, idle_s)
    assert_allclose(costs.idle_energy_j, 0.5 * np.array(idle_s))
    assert_allclose(costs.report_energy_j, [15, 30, 0])  # full power is 15 W
    assert_allclose(costs.compute_energy_j, [16, 4, 0])  # iota / 2 = 1: work times the frequency squared
