"""Which uploads arrive."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from fedwave.errors import ProblemError
from fedwave.wireless.delivery import (
    UploadFate,
    UploadRisks,
    packet_error_probability,
    success_probability,
    upload_outcome,
)


def outcome(risks, *, snr, finish_time_s=None, device_index=None, num_devices=None, seed=0):
    snr = np.asarray(snr, dtype=float)
    device_index = np.arange(len(snr)) if device_index is None else np.asarray(device_index)
    return upload_outcome(
        risks,
        device_index=device_index,
        num_devices=num_devices or len(snr),
        snr=snr,
        finish_time_s=np.zeros(len(snr)) if finish_time_s is None else np.asarray(finish_time_s, dtype=float),
        rng=np.random.default_rng(seed),
    )


def test_by_default_everything_arrives():
    assert outcome(UploadRisks(), snr=[1e-9, 0.0, 100.0], finish_time_s=[1e9, np.inf, 0]).arrived.all()


def test_an_upload_below_the_snr_threshold_is_in_outage():
    result = outcome(UploadRisks(outage_snr=2.0), snr=[1.99, 2.0, 0.0])
    assert result.fate.tolist() == [UploadFate.OUTAGE, UploadFate.ARRIVED, UploadFate.OUTAGE]


def test_an_upload_after_the_deadline_is_late():
    result = outcome(UploadRisks(deadline_s=2.0), snr=[1, 1, 1], finish_time_s=[2.0, 2.1, np.inf])
    assert result.fate.tolist() == [UploadFate.ARRIVED, UploadFate.LATE, UploadFate.LATE]


def test_packet_errors_follow_chens_formula():
    # 1 - exp(-1.08 / snr): 0.660404 at 1, 0.102372 at 10; no signal never arrives.
    probability = packet_error_probability(np.array([1.0, 10.0, 0.0, 1e-320, 1e12]), waterfall=1.08)
    assert probability == pytest.approx([0.660404, 0.102372, 1.0, 1.0, 1.08e-12], rel=1e-5)
    lost = ~outcome(UploadRisks(packet_error_waterfall=1.08), snr=np.full(20_000, 10.0)).arrived
    assert lost.mean() == pytest.approx(0.102372, abs=0.009)


def test_devices_drop_out_with_the_given_probability_and_then_send_nothing():
    result = outcome(UploadRisks(dropout_probability=0.3), snr=np.ones(20_000))
    assert np.mean(~result.arrived) == pytest.approx(0.3, abs=0.013)
    assert_array_equal(result.transmitted, result.arrived)
    assert not outcome(UploadRisks(dropout_probability=1.0), snr=np.ones(50)).arrived.any()


def test_a_lost_upload_that_was_sent_counts_as_transmitted():
    result = outcome(UploadRisks(outage_snr=1.0), snr=[0.5])
    assert not result.arrived.any()
    assert result.transmitted.all()


def test_the_first_cause_is_named():
    every = UploadRisks(outage_snr=1.0, packet_error_waterfall=1e9, dropout_probability=1.0, deadline_s=1.0)
    late_and_weak = {"snr": [0.1], "finish_time_s": [5.0]}
    assert outcome(every, **late_and_weak).fate[0] == UploadFate.DROPPED_OUT
    no_dropout = replace(every, dropout_probability=0.0)
    assert outcome(no_dropout, **late_and_weak).fate[0] == UploadFate.OUTAGE
    no_outage = replace(no_dropout, outage_snr=None)
    assert outcome(no_outage, **late_and_weak).fate[0] == UploadFate.PACKET_ERROR


def test_luck_belongs_to_the_device_not_to_its_place_in_the_list():
    risks = UploadRisks(dropout_probability=0.5, packet_error_waterfall=1.08)
    everyone = outcome(risks, snr=np.ones(40))
    some = np.array([31, 5, 17])
    only_some = outcome(risks, snr=np.ones(3), device_index=some, num_devices=40)
    assert_array_equal(only_some.fate, everyone.fate[some])


def test_nobody_uploading_is_no_problem():
    assert outcome(UploadRisks(dropout_probability=0.5), snr=[], num_devices=4).arrived.shape == (0,)


def test_every_fate_is_the_one_worked_out_device_by_device():
    risks = UploadRisks(outage_snr=0.4, packet_error_waterfall=0.5, dropout_probability=0.3, deadline_s=2.0)
    rng = np.random.default_rng(5)
    snr, finish_time_s = rng.exponential(1.0, 60), rng.uniform(0.0, 3.0, 60)
    who = np.sort(rng.choice(100, 60, replace=False))
    result = outcome(risks, snr=snr, finish_time_s=finish_time_s, device_index=who, num_devices=100, seed=9)
    luck = np.random.default_rng(9).random(200)  # the devices' luck with dropping out, then with packets
    for k, i in enumerate(who):
        if luck[i] < 0.3:
            expected = UploadFate.DROPPED_OUT
        elif snr[k] < 0.4:
            expected = UploadFate.OUTAGE
        elif luck[100 + i] < 1 - np.exp(-0.5 / snr[k]):
            expected = UploadFate.PACKET_ERROR
        elif finish_time_s[k] > 2.0:
            expected = UploadFate.LATE
        else:
            expected = UploadFate.ARRIVED
        assert result.fate[k] == expected
    assert set(result.fate) == set(UploadFate) - {UploadFate.FLAT}  # of a battery, which no link knows
    assert_array_equal(result.transmitted, result.fate != UploadFate.DROPPED_OUT)


@pytest.mark.parametrize("name", ["outage_snr", "packet_error_waterfall", "deadline_s"])
@pytest.mark.parametrize("value", [0.0, -1.0, np.nan])
def test_a_limit_that_is_no_limit_is_refused(name, value):
    with pytest.raises(ProblemError, match=rf"{name} must be > 0, got .*\. Use None for none"):
        UploadRisks(**{name: value})


@pytest.mark.parametrize("probability", [-0.1, 1.1, np.nan])
def test_a_probability_lies_between_zero_and_one(probability):
    with pytest.raises(ProblemError, match=r"dropout_probability must lie in 0 to 1, got"):
        UploadRisks(dropout_probability=probability)
    assert UploadRisks(dropout_probability=1.0).dropout_probability == 1.0


def test_the_fates_are_six_and_keep_their_numbers():
    names = ["ARRIVED", "DROPPED_OUT", "OUTAGE", "PACKET_ERROR", "LATE", "FLAT"]
    assert [(fate.name, int(fate)) for fate in UploadFate] == [(name, i) for i, name in enumerate(names)]


def test_the_worst_luck_cannot_lose_what_is_certain_to_arrive():
    class WorstLuck:
        def random(self, shape):
            return np.zeros(shape)

    sure = UploadRisks(dropout_probability=0.0, packet_error_waterfall=1e-320)  # an error of probability 0
    result = upload_outcome(
        sure,
        device_index=np.array([0, 1]),
        num_devices=2,
        snr=np.array([1e9, 1e9]),
        finish_time_s=np.zeros(2),
        rng=WorstLuck(),
    )
    assert result.arrived.all()


def test_success_is_the_opposite_of_a_packet_error():
    snr = np.array([1e-9, 0.1, 1.0, 50.0])
    expected = 1 - packet_error_probability(snr, waterfall=0.7)
    assert_allclose(success_probability(snr, waterfall=0.7), expected, atol=1e-15)
    assert success_probability(np.array([0.0]), waterfall=0.7)[0] == 0.0
    assert success_probability(np.array([0.0, 3.0]), waterfall=0.0).tolist() == [1.0, 1.0]


def test_a_planner_stays_above_the_outage_by_its_margin():
    assert UploadRisks().planned_min_snr == 0.0
    assert UploadRisks(outage_snr=4.0, outage_margin=2.0).planned_min_snr == 8.0
    with pytest.raises(ProblemError, match=r"outage_margin must be >= 1, got 0\.5"):
        UploadRisks(outage_margin=0.5)
