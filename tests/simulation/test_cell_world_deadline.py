"""Nobody pays for what happens after the round's end: accounts worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

from fedwave.wireless.delivery import UploadFate
from tests.simulation.radio_by_hand import costs_of, play, world

# 4 cycles of work at 2 and 1 Hz: 2 and 4 s; energy iota/2 * 4 * nu^2 = 16 and 4 J.
# p h = 15 and 1: 4 and 1 bit/s, so 8 bits take 2 and 8 s and cost 30 and 8 J.
PLAN = {"power_w": [15.0, 1.0], "frequency_hz": [2.0, 1.0], "gain": [1.0, 1.0]}


def cut_at(deadline_s, **options):
    return world(settings={"losses": {"deadline_s": deadline_s}}, **options)


def test_without_a_deadline_everybody_finishes():
    costs = costs_of(play(world(), **PLAN))
    assert_allclose(costs.compute_time_s, [2, 4])
    assert_allclose(costs.compute_energy_j, [16, 4])
    assert_allclose(costs.upload_time_s, [2, 8])
    assert_allclose(costs.upload_energy_j, [30, 8])
    assert costs.delay_s == pytest.approx(12)


def test_a_late_upload_pays_until_the_rounds_end():
    outcome = play(cut_at(7.0), **PLAN)
    costs = costs_of(outcome)
    assert outcome.fate.tolist() == [UploadFate.ARRIVED, UploadFate.LATE]
    assert outcome.received.tolist() == [0]
    assert_allclose(costs.upload_time_s, [2, 3])  # uploads start at 4 s
    assert_allclose(costs.upload_energy_j, [30, 3])
    assert_allclose(costs.compute_energy_j, [16, 4])
    assert costs.delay_s == 7.0


def test_a_local_update_that_is_cut_off_pays_for_its_share():
    outcome = play(cut_at(3.0), **PLAN)
    costs = costs_of(outcome)
    assert outcome.received.size == 0
    assert_allclose(costs.compute_time_s, [2, 3])
    assert_allclose(costs.compute_energy_j, [16, 3])  # iota/2 nu^3 = 1 W for 3 s
    assert_allclose(costs.upload_time_s, [0, 0])
    assert_allclose(costs.upload_energy_j, [0, 0])
    assert costs.delay_s == 3.0


@pytest.mark.parametrize(
    ("limit", "time_s", "energy_j"),
    [({"max_upload_s": 3.0}, 3.0, 3.0), ({"max_upload_j": 4.0}, 4.0, 4.0), ({"max_upload_s": 8.0}, 8.0, 8.0)],
)
def test_an_upload_is_broken_off_at_a_limit_of_its_own(limit, time_s, energy_j):
    outcome = play(world(**limit), **{**PLAN, "power_w": [1.0, 1.0], "gain": [15.0, 1.0]})
    costs = costs_of(outcome)
    is_late = time_s < 8.0
    assert outcome.fate.tolist() == [UploadFate.ARRIVED, UploadFate.LATE if is_late else UploadFate.ARRIVED]
    assert outcome.received.tolist() == ([0] if is_late else [0, 1])
    assert_allclose(costs.upload_time_s, [2, time_s])
    assert_allclose(costs.upload_energy_j, [2, energy_j])
    assert costs.delay_s == pytest.approx(4 + max(time_s, 2))


def test_a_limit_ends_an_upload_without_a_signal():
    outcome = play(world(max_upload_s=3.0), **{**PLAN, "gain": [1.0, 0.0]})
    assert outcome.received.tolist() == [0]
    assert_allclose(costs_of(outcome).upload_time_s, [2, 3])


def test_an_upload_that_would_never_end_costs_what_is_left_of_the_round():
    outcome = play(cut_at(5.0), **{**PLAN, "gain": [1.0, 0.0]})
    costs = costs_of(outcome)
    assert_allclose(costs.upload_time_s, [1, 1])
    assert_allclose(costs.upload_energy_j, [15, 1])
    assert math.isfinite(costs.energy_j)


def test_reports_are_cut_off_in_their_turn():
    # One turn after the other on a single block: at full power 4 bit/s, so 2 s each, from 4 s on.
    place = world(settings={"num_blocks": 1, "losses": {"deadline_s": 7.0}}, report_bits=8.0)
    costs = costs_of(play(place, **{**PLAN, "block": [0, -1]}, interference_w=[0.0]))
    assert_allclose(costs.report_time_s, [2, 1])
    assert_allclose(costs.report_energy_j, [30, 15])
    assert_allclose(costs.upload_time_s, [0, 0])
    assert costs.delay_s == 7.0


def test_waiting_fills_the_round_and_no_more():
    costs = costs_of(play(cut_at(7.0, idle_power_w=0.5), **PLAN))
    assert_allclose(costs.idle_time_s, [3, 0])
    assert_allclose(costs.idle_energy_j, [1.5, 0])
    busy = costs.compute_time_s + costs.report_time_s + costs.upload_time_s + costs.idle_time_s
    assert_allclose(busy, [7, 7])


def test_a_deadline_that_does_not_bind_leaves_every_bit():
    free, loose = costs_of(play(world(), **PLAN)), costs_of(play(cut_at(1e6), **PLAN))
    for name in ("compute_energy_j", "compute_time_s", "upload_energy_j", "upload_time_s"):
        assert np.array_equal(getattr(free, name), getattr(loose, name))
    assert free.delay_s == loose.delay_s
