"""What a radio draws at rest: the cheapest state for each gap, and ramp-ups counted on a timeline by hand."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from fedwave.wireless.sleep import NEVER_ASLEEP, SleepState, Waiting

DOZE = SleepState(power_w=5.0)
NAP = SleepState(power_w=2.0, ramp_energy_j=6.0, min_time_s=3.0)
NIGHT = SleepState(power_w=1.0, ramp_energy_j=20.0, min_time_s=10.0)
RADIO = Waiting((DOZE, NAP, NIGHT))


@pytest.mark.parametrize(
    ("time_s", "energy_j"),
    [
        (0.0, 0.0),
        (1.0, 5.0),
        (2.999, 14.995),  # a nap would cost 11.998, but does not fit
        (3.0, 12.0),  # 2 x 3 + 6
        (9.0, 24.0),  # 2 x 9 + 6
        (10.0, 26.0),  # a nap still is cheaper than 10 + 20
        (14.0, 34.0),  # where the night becomes as cheap as a nap
        (20.0, 40.0),
    ],
)
def test_a_rest_is_spent_in_the_cheapest_state_that_fits(time_s, energy_j):
    assert RADIO.rest_energy_j(np.array([time_s])) == pytest.approx([energy_j])


def test_a_night_that_does_not_fit_is_not_slept_even_if_it_were_cheaper():
    light = Waiting((DOZE, SleepState(power_w=0.0, min_time_s=4.0)))
    assert_allclose(light.rest_energy_j(np.array([3.0, 4.0, 5.0])), [15.0, 0.0, 0.0])


def test_a_round_counted_on_a_timeline():
    """A round of 60 s. Reports at 20 s or later, uploads from 30 s on."""
    #                        listens, reports, uploads | listens only | not asked | uploads, no broadcast
    listen_time_s = np.array([4.0, 4.0, 0.0, 0.0])
    report = (np.array([20.0, 0.0, 0.0, 0.0]), np.array([1.0, 0.0, 0.0, 0.0]))
    upload = (np.full(4, 30.0), np.array([30.0, 0.0, 0.0, 10.0]))
    found = RADIO.energy_j(listen_time_s=listen_time_s, sending=(report, upload), end_s=60.0)
    assert_allclose(
        found,
        [
            20 + (16 + 20) + (2 * 9 + 6),  # woken at 0 s; a night of 16 s; a nap of 9 s; sends to the end
            20 + 1 * 56,  # woken at 0 s; in its deepest state from 4 s on
            1 * 60,  # not woken
            (30 + 20) + 1 * 20,  # one night before its upload, and its deepest state after it
        ],
    )


def test_two_ramp_ups_of_a_round_without_reports():
    flat = Waiting((SleepState(power_w=0.0, ramp_energy_j=1.0),))
    ramps = flat.energy_j(
        listen_time_s=np.array([1.0, 1.0, 0.0]),
        sending=((np.full(3, 5.0), np.array([2.0, 0.0, 0.0])),),
        end_s=7.0,
    )
    assert_allclose(ramps, [2, 1, 0])  # broadcast and upload; broadcast alone; none


def test_a_phase_that_follows_at_once_needs_no_rest():
    found = RADIO.energy_j(
        listen_time_s=np.array([4.0]), sending=((np.array([4.0]), np.array([2.0])),), end_s=6.0
    )
    assert_allclose(found, [20.0])


def test_rounding_makes_no_negative_rest():
    found = RADIO.energy_j(
        listen_time_s=np.array([1.0]), sending=((np.array([1.0 - 1e-12]), np.array([1.0])),), end_s=1.9
    )
    assert_allclose(found, [20.0])


def test_a_radio_without_states_costs_nothing():
    found = NEVER_ASLEEP.energy_j(listen_time_s=np.ones(3), sending=(), end_s=10.0)
    assert found.tolist() == [0, 0, 0]
