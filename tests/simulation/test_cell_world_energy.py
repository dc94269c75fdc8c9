"""Energy as a battery feels it: amplifier, circuit, broadcast and modem, worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

from fedwave.wireless.delivery import UploadFate
from fedwave.wireless.power_sets import POWER_SETS, PowerSet
from tests.simulation.radio_by_hand import costs_of, play, world

PLAN = {"power_w": [15.0, 1.0], "frequency_hz": [2.0, 1.0], "gain": [1.0, 1.0]}


def test_sending_drains_amplifier_and_circuit():
    costs = costs_of(
        play(world(settings={"radio": {"amplifier_efficiency": 0.5, "circuit_power_w": 3.0}}), **PLAN)
    )
    assert_allclose(costs.upload_time_s, [2, 8])
    assert_allclose(costs.upload_energy_j, [2 * (30 + 3), 8 * (2 + 3)])


def test_reports_drain_them_too():
    place = world(settings={"radio": {"amplifier_efficiency": 0.5, "circuit_power_w": 3.0}}, report_bits=8.0)
    costs = costs_of(play(place, **PLAN))
    assert_allclose(costs.report_energy_j, [2 * 33, 2 * 33])  # 15 W at 4 bit/s: 2 s each, side by side
    assert costs.delay_s == pytest.approx(4 + 2 + 8)


def test_a_modem_takes_longer_than_shannon():
    rate = {"efficiency": 0.5, "max_spectral_efficiency": 1.0}
    costs = costs_of(play(world(settings={"rate": rate}), **PLAN))
    assert_allclose(costs.upload_time_s, [8, 16])  # 4 bit/s: half is 2, capped to 1; 1 bit/s: half
    assert costs.links is not None
    assert_allclose(costs.links.rate_bps, [1, 0.5])


def test_a_device_below_the_modems_floor_gets_no_slot_and_counts_as_outage():
    outcome = play(world(settings={"rate": {"min_sinr_db": 3.0}}), **PLAN)  # SNR 15 and 1
    costs = costs_of(outcome)
    assert outcome.fate.tolist() == [UploadFate.ARRIVED, UploadFate.OUTAGE]
    assert_allclose(costs.upload_time_s, [2, 0])
    assert_allclose(costs.upload_energy_j, [30, 0])
    assert costs.delay_s == pytest.approx(4 + 2)


def test_an_outage_above_the_floor_is_paid_for():
    outcome = play(world(settings={"losses": {"outage_snr_db": 3.0}}), **PLAN)
    assert outcome.fate.tolist() == [UploadFate.ARRIVED, UploadFate.OUTAGE]
    assert_allclose(costs_of(outcome).upload_energy_j, [30, 8])


DOWN = {"downlink": {"broadcast": True, "power_w": 6.0, "receive_power_w": 0.25}}


def test_the_broadcast_comes_first_and_everybody_who_computes_listens():
    # Two blocks of 1 Hz with N0 = 1: noise 2 W, 6 W sent. Gains 5 and 1: SNR 15 and 3, 8 and 4 bit/s.
    costs = costs_of(play(world(settings=DOWN), **{**PLAN, "gain": [5.0, 1.0]}))
    assert_allclose(costs.downlink_time_s, [2, 2])
    assert_allclose(costs.downlink_energy_j, [0.5, 0.5])
    assert costs.broadcast_energy_j == pytest.approx(12.0)
    assert_allclose(costs.compute_time_s, [2, 4])
    assert costs.delay_s == pytest.approx(2 + 4 + 8)
    silent = costs_of(play(world(), **{**PLAN, "gain": [5.0, 1.0]}))
    assert costs.energy_j == pytest.approx(
        silent.energy_j + 1.0
    )  # the base station's joules are not a battery's
    assert_allclose(silent.downlink_time_s, [0, 0])
    assert silent.broadcast_energy_j == 0.0


def test_who_does_not_compute_does_not_listen_and_is_not_waited_for():
    costs = costs_of(play(world(settings=DOWN), **{**PLAN, "gain": [5.0, 1.0]}, computes=[0], block=[0, -1]))
    assert_allclose(costs.downlink_time_s, [1, 0])  # 8 bits at 8 bit/s
    assert_allclose(costs.downlink_energy_j, [0.25, 0])


def test_the_deadline_counts_from_the_broadcast():
    cut = {**DOWN, "losses": {"deadline_s": 5.0}}
    costs = costs_of(play(world(settings=cut, idle_power_w=1.0), **{**PLAN, "gain": [5.0, 1.0]}))
    assert_allclose(costs.downlink_time_s, [2, 2])
    assert_allclose(costs.compute_time_s, [2, 3])
    assert_allclose(costs.compute_energy_j, [16, 3])
    assert_allclose(costs.upload_time_s, [0, 0])
    assert_allclose(costs.idle_time_s, [1, 0])
    assert costs.delay_s == 5.0
    shorter = {**DOWN, "losses": {"deadline_s": 1.0}}
    costs = costs_of(play(world(settings=shorter), **{**PLAN, "gain": [5.0, 1.0]}))
    assert_allclose(costs.downlink_energy_j, [0.25, 0.25])
    assert costs.broadcast_energy_j == 6.0
    assert_allclose(costs.compute_energy_j, [0, 0])


def test_the_links_are_what_eq_25_is_made_of():
    costs = costs_of(
        play(world(), **{**PLAN, "gain": [[9.0, 2.0], [9.0, 9.0]]}, interference_w=[1.0, 3.0], block=[1, -1])
    )
    links = costs.links
    assert links is not None
    assert links.num_samples.tolist() == [4, 4]
    assert links.channel_gain[0] == 2.0
    assert links.interference_w[0] == 3.0
    assert links.sinr[0] == pytest.approx(15 * 2 / (3 + 1))
    assert links.rate_bps[0] == pytest.approx(math.log2(1 + 7.5))
    for column in (links.channel_gain, links.interference_w, links.sinr, links.rate_bps):
        assert np.isnan(column[1])


# 1 W a unit and deep sleep at 1 W: sending is straight from 250 W at 1 mW to 700 W at 0.2 W.
SLEEP = {"radio": {"power_set": "by-hand", "waiting": "sleep"}}


@pytest.fixture
def by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(
        POWER_SETS, "by-hand", PowerSet(unit_w=1.0, deep_sleep_w=1.0, source="a unit of a watt")
    )


@pytest.mark.usefixtures("by_hand")
def test_a_round_with_sleep_counted_on_a_timeline():
    """Broadcast 0 to 2 s, computing to 4 and 6 s, uploads from 6 s on for 2 s and 8 s: it ends at 14 s."""
    costs = costs_of(
        play(world(settings={**DOWN, **SLEEP}), **{**PLAN, "gain": [5.0, 1.0], "power_w": [3, 1]})
    )
    assert_allclose(costs.upload_time_s, [2, 8])
    assert costs.delay_s == pytest.approx(14)
    # Both wake for the broadcast (0.45 J) and for their upload (0.45 J), and sleep at 1 W from 2 to 6 s, also
    # while they compute; the first sleeps from 8 to 14 s, too.
    assert_allclose(costs.idle_energy_j, [0.45 + 4 + 0.45 + 6, 0.45 + 4 + 0.45])
    assert_allclose(costs.idle_time_s, [2 + 6, 0])
    assert costs.energy_j == pytest.approx(
        sum(
            float(part.sum())
            for part in (
                costs.downlink_energy_j,
                costs.compute_energy_j,
                costs.upload_energy_j,
                costs.idle_energy_j,
            )
        )
    )


@pytest.mark.usefixtures("by_hand")
def test_who_is_not_asked_sleeps_for_the_whole_round_and_who_is_not_chosen_after_listening():
    asked = {**PLAN, "gain": [5.0, 1.0], "power_w": [3.0, 1.0], "block": [0, -1]}
    costs = costs_of(play(world(settings={**DOWN, **SLEEP}), **asked, computes=[0]))
    assert costs.delay_s == pytest.approx(1 + 2 + 2)  # at the first device's own 8 bit/s
    assert_allclose(costs.idle_energy_j, [0.45 + 2 + 0.45, 5])
    costs = costs_of(play(world(settings={**DOWN, **SLEEP}), **asked))
    assert costs.delay_s == pytest.approx(2 + 4 + 2)
    assert_allclose(costs.idle_energy_j, [0.45 + 4 + 0.45, 0.45 + 6])


@pytest.mark.usefixtures("by_hand")
def test_reports_wake_a_radio_once_more():
    place = world(settings={**DOWN, **SLEEP}, report_bits=4.0)
    costs = costs_of(play(place, **{**PLAN, "gain": [1.0, 1.0], "power_w": [15.0, 15.0]}))
    # Broadcast 0 to 2 s, computing to 6 s, reports to 7 s, uploads to 9 s: no rest between the last two.
    assert_allclose(costs.downlink_time_s, [2, 2])  # SNR 3, 2 bit/s/Hz over 2 Hz
    assert costs.delay_s == pytest.approx(2 + 4 + 1 + 2)
    assert_allclose(costs.idle_energy_j, [0.45 + 4 + 0.45] * 2)


@pytest.mark.usefixtures("by_hand")
def test_a_round_that_ends_before_the_uploads_has_one_ramp_up():
    cut = {**DOWN, **SLEEP, "losses": {"deadline_s": 5.0}}
    costs = costs_of(play(world(settings=cut), **{**PLAN, "gain": [5.0, 1.0], "power_w": [3.0, 1.0]}))
    assert_allclose(costs.idle_energy_j, [0.45 + 3, 0.45 + 3])
