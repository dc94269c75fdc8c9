"""From uploads to a plan: what the deadline of a round leaves for computing, and why nobody uploads."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fedwave.allocation import (
    Status,
    allocate,
    violations,
)
from fedwave.allocation.computing.cpu_frequency import compute_cost
from tests.allocation.allocation_problems import (
    small_problem,
)


def test_computing_and_upload_share_the_rounds_deadline():
    problem = small_problem(max_frequency_hz=8.0, max_power_w=100.0)
    free = allocate(problem)
    assert free.compute_delay_s > 1.2
    tight = replace(problem, max_round_delay_s=0.7 * free.delay_s)
    found = allocate(tight)
    assert found.delay_s == pytest.approx(0.7 * free.delay_s)
    assert found.compute_delay_s < free.compute_delay_s
    assert found.upload_delay_s < free.upload_delay_s
    # A second is worth the same on both sides: -dE/dT of the CPUs equals that of the uploads.
    cpu = 0.25 * float((problem.capacitance * problem.workload_cycles**3).sum()) / found.compute_delay_s**3
    nats = np.log(2) / found.upload_delay_s
    unit = 0.25 * np.log(2) * float((found.transmit_power_w.sum()) / np.expm1(nats))
    radio = unit * ((nats - 1) * np.exp(nats) + 1) / np.log(2)
    assert cpu == pytest.approx(radio, rel=1e-6)
    slack = allocate(replace(problem, max_round_delay_s=1.5 * free.delay_s))
    assert slack.objective == pytest.approx(free.objective, rel=1e-12)


def test_a_fixed_phase_counts_for_the_deadline_alone():
    problem = small_problem(max_frequency_hz=8.0, max_round_delay_s=2.0)
    shifted = replace(problem, max_round_delay_s=2.75, fixed_delay_s=0.75)
    assert allocate(shifted).objective == pytest.approx(allocate(problem).objective, rel=1e-12)
    assert allocate(shifted).delay_s == pytest.approx(2.0)
    assert violations(shifted, allocate(shifted)) == ()


def test_a_round_that_cannot_end_in_time_says_so():
    late = allocate(small_problem(max_round_delay_s=2.5, fixed_delay_s=1.0))
    assert late.status is Status.INFEASIBLE
    assert late.reason == (
        "device 1 cannot compute by 1.5 s even at full frequency (it needs 2 s): it misses max_round_delay_s "
        "by 20 %"
    )
    no_time = allocate(small_problem(max_round_delay_s=2.9))
    assert no_time.status is Status.INFEASIBLE
    assert no_time.num_selected == 0
    assert no_time.reason == (
        "device 0 cannot end the round by 2.9 s even with all at full power and frequency (it needs 3 s): it "
        "misses max_round_delay_s by 3.45 %, and no other device can"
    )


def test_no_blocks_or_no_devices_have_the_trivial_answer():
    found = allocate(small_problem(interference_w=[]))
    assert (found.status, found.reason, found.num_selected) == (Status.OPTIMAL, "there are no blocks", 0)
    assert found.objective == pytest.approx(-compute_cost(small_problem(), found.cpu_frequency_hz))
    empty = dict.fromkeys(
        ("contribution", "channel_gain", "max_power_w", "workload_cycles", "max_frequency_hz", "capacitance"),
        np.zeros(0),
    )
    found = allocate(small_problem(**empty))
    assert (found.status, found.reason, found.objective) == (Status.OPTIMAL, "there are no devices", 0.0)


def test_nobody_uploads_when_no_contribution_is_positive():
    found = allocate(small_problem(contribution=[-1.0, 0.0, -2.0]))
    assert found.status is Status.OPTIMAL
    assert found.num_selected == 0
    assert found.reason == "no device that may upload has a contribution > 0"
    assert found.gap == 0.0


def test_nobody_uploads_when_nothing_is_worth_its_cost():
    found = allocate(small_problem(delay_weight=1e6))
    assert (found.status, found.num_selected) == (Status.OPTIMAL, 0)
    assert found.reason == "no upload is worth its energy and delay"
