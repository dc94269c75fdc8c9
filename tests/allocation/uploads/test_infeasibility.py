from __future__ import annotations

import numpy as np
import pytest

from fedwave.allocation import Status, allocate
from fedwave.allocation.uploads.infeasibility import nearest_miss, why_no_upload
from tests.allocation.allocation_problems import small_problem


def test_a_deadline_nobody_can_meet_is_infeasible_and_says_who_came_closest():
    found = allocate(small_problem(max_delay_s=0.5))
    assert found.status is Status.INFEASIBLE
    assert found.reason == (
        "device 0 cannot finish by 0.5 s even at full power (it needs 1 s): it misses max_delay_s by 100 %, "
        "and no other device can"
    )
    assert found.num_selected == 0
    assert np.isfinite(found.objective)


def test_an_energy_limit_nobody_can_meet_is_infeasible():
    found = allocate(small_problem(max_energy_j=0.1))
    assert found.status is Status.INFEASIBLE
    assert found.reason == (
        "device 0 cannot upload within 0.1 J even at the slowest rate (it needs more than 0.693147 J): it "
        "misses max_energy_j by 593 %, and no other device can"
    )
    assert "misses max_energy_j by any measure" in allocate(small_problem(max_energy_j=0.0)).reason
    far = allocate(small_problem(max_energy_j=0.01))
    assert "misses max_energy_j by a factor of 69.3" in far.reason


def test_limits_that_only_clash_together_are_explained():
    problem = small_problem(max_delay_s=1.2, max_energy_j=0.75)
    found = allocate(problem)
    assert found.status is Status.INFEASIBLE
    # At 1.2 s the upload takes 1.2 (2^(1/1.2) - 1) = 0.938 J; with 0.75 J it takes 3.96 s.
    assert found.reason == (
        "device 0 cannot finish by 1.2 s with 0.75 J (fast enough takes too much energy): it misses "
        "max_energy_j by 25.1 %, and no other device can"
    )


def test_a_limit_that_is_missed_by_little_says_so():
    # At full power device 0 takes 1 s on block 0, device 1 1.58 s, device 2 1.24 s.
    late = allocate(small_problem(max_delay_s=0.9997))
    assert late.status is Status.INFEASIBLE
    assert late.reason.startswith(
        "device 0 cannot finish by 0.9997 s even at full power (it needs 1 s): it misses max_delay_s by "
        "0.03 % (nearly feasible)"
    )
    frugal = allocate(small_problem(max_delay_s=1.2, max_energy_j=0.93))
    assert "it misses max_energy_j by 0.877 % (nearly feasible), and no other" in frugal.reason
    slow = allocate(small_problem(max_compute_delay_s=1.999))
    assert slow.reason == (
        "device 1 cannot compute by 1.999 s even at full frequency (it needs 2 s): it misses "
        "max_compute_delay_s by 0.05 % (nearly feasible)"
    )


def test_the_device_that_comes_closest_is_named():
    # Device 1 has the strongest signal but the least energy left; device 2 misses its limit by 2 %.
    problem = small_problem(channel_gain=[0.01, 1.0, 0.5], max_energy_j=[1.0, 0.01, 2 * np.log(2) / 1.02])
    device, share = nearest_miss(problem, np.arange(3))
    assert device == 2
    assert share == pytest.approx(0.02)
    assert "device 2 cannot upload within" in allocate(problem).reason
    assert nearest_miss(small_problem(), np.array([1, 2])) == (1, 0.0)
    assert nearest_miss(small_problem(max_power_w=0.0), np.array([1, 2])) == (1, np.inf)
    by_block = small_problem(
        channel_gain=[[0.1, 0.2], [0.0, 0.1], [0.01, 1.0]], max_delay_s=1.5, max_power_w=1.0
    )
    assert nearest_miss(by_block, np.arange(3))[0] == 2  # on block 1: SNR 0.5, 1.71 s
    assert nearest_miss(by_block, np.arange(3))[1] == pytest.approx(1 / np.log2(1.5) / 1.5 - 1)


def test_reasons_name_missing_power_and_gain():
    blocks = np.arange(2)
    silent = small_problem(max_power_w=[0.0, 1.0, 1.0], channel_gain=[1.0, 0.0, 1.0])
    assert why_no_upload(silent, 0, blocks) == "device 0 cannot upload: its max_power_w is 0"
    assert why_no_upload(silent, 1, blocks) == "device 1 cannot upload: its channel_gain is 0"


def test_reasons_name_the_limits_of_the_link_together_with_energy():
    problem = small_problem(max_round_delay_s=3.2, max_energy_j=0.75)
    found = allocate(problem)
    assert found.status is Status.INFEASIBLE
    assert found.reason == (
        "device 0 cannot meet max_round_delay_s with 0.75 J (fast enough takes too much energy): it misses "
        "max_energy_j by 25.1 %, and no other device can"
    )
    weak = allocate(small_problem(min_snr=0.8, max_energy_j=0.75))
    # At an SNR of 0.8: 0.8 / log2(1.8) = 0.943 J.
    assert "device 0 cannot meet min_snr with 0.75 J" in weak.reason
    assert "misses max_energy_j by 25.8 %" in weak.reason
