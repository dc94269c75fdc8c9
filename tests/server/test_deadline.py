"""Planning for a round's deadline: methods that choose leave time for computing and reports."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from fedwave.allocation import METHODS, Allocation, allocate
from fedwave.server import problem_of_cell
from fedwave.wireless.load import load_cell
from tests.server.radios import ETA_2, OPTIMAL_RADIO, cell_planner, play, radio_planner

CELL = load_cell("paper", num_devices=30, seed=0)
CHANNEL = CELL.draw(0)
WORTH = np.random.default_rng(0).uniform(100.0, 900.0, 30)
CHOOSING = sorted(name for name, method in METHODS.items() if not method.serves_given_devices)
SERVING = sorted(name for name, method in METHODS.items() if method.serves_given_devices)


def planned(method: str, deadline_s: float | None, **settings: Any) -> Allocation:
    planner = cell_planner(CELL.fleet, CELL.num_blocks, method=method, deadline_s=deadline_s, **settings)
    return play(planner, WORTH.tolist(), 0, CHANNEL).allocation


def reports_s(report_bits: float) -> float:
    """Return how long the reports take by hand: twenty devices at once, then the other ten."""
    snr = CELL.fleet.max_power_w * CHANNEL.channel_gain / (1.0 + np.resize(CHANNEL.interference_w, 30))
    time_s = report_bits / np.log2(1.0 + snr)
    return float(time_s[:20].max() + time_s[20:].max())


@pytest.mark.parametrize("method", CHOOSING)
@pytest.mark.parametrize("report_bits", [0.0, 0.05])
def test_a_method_that_chooses_plans_as_if_the_time_left_were_its_limit(
    method: str, report_bits: float
) -> None:
    free = planned(method, None, report_bits=report_bits)
    left_s = 0.6 * free.upload_delay_s
    deadline_s = free.compute_delay_s + reports_s(report_bits) + left_s
    cut = planned(method, deadline_s, report_bits=report_bits)
    assert cut.num_selected > 0
    assert cut.compute_delay_s == free.compute_delay_s
    assert cut.upload_delay_s < left_s
    # The plan is early by a billionth of the whole round.
    problem = problem_of_cell(
        CELL,
        WORTH,
        num_samples=np.resize([4, 8], 30),
        num_local_steps=2,
        max_delay_s=left_s - 1e-9 * deadline_s,
    )
    expected = allocate(problem, method)
    assert cut.selected.tolist() == expected.selected.tolist()
    assert cut.objective == pytest.approx(expected.objective, rel=1e-9)


@pytest.mark.parametrize("report_bits", [0.0, 0.1])
def test_two_devices_take_all_the_time_that_computing_and_reports_leave(report_bits: float) -> None:
    # Free, both compute for 8 s and upload for 0.5 s. At full power they have SNR 4.5 and 7.
    phase_s = report_bits / math.log2(5.5)
    deadline_s = 8.0 + phase_s + 0.45
    planner = radio_planner(OPTIMAL_RADIO, delay_weight=ETA_2, deadline_s=deadline_s, report_bits=report_bits)
    allocation = planner.play([100.0, 90.0]).allocation
    assert allocation.selected.tolist() == [0, 1]
    assert allocation.upload_delay_s == pytest.approx(0.45 - 1e-9 * deadline_s, rel=1e-10)
    assert allocation.compute_delay_s == pytest.approx(8.0)


@pytest.mark.parametrize("method", CHOOSING)
def test_a_deadline_that_does_not_bind_changes_nothing(method: str) -> None:
    free = planned(method, None)
    for deadline_s in (2.0 * free.delay_s, free.delay_s * (1 + 1e-8)):
        same = planned(method, deadline_s)
        assert same.block_of_device.tolist() == free.block_of_device.tolist()
        assert same.transmit_power_w.tolist() == free.transmit_power_w.tolist()


@pytest.mark.parametrize("method", CHOOSING)
def test_a_deadline_before_the_computing_ends_cannot_be_planned_for(method: str) -> None:
    free = planned(method, None)
    same = planned(method, 0.9 * free.compute_delay_s)
    assert same.block_of_device.tolist() == free.block_of_device.tolist()
    assert same.transmit_power_w.tolist() == free.transmit_power_w.tolist()


@pytest.mark.parametrize("method", CHOOSING)
def test_of_a_limit_and_a_deadline_the_tighter_one_holds(method: str) -> None:
    free = planned(method, None)
    limit_s = 0.7 * free.upload_delay_s
    limited = planned(method, None, max_delay_s=limit_s)
    loose = planned(method, free.compute_delay_s + 0.9 * free.upload_delay_s, max_delay_s=limit_s)
    assert loose.transmit_power_w.tolist() == limited.transmit_power_w.tolist()
    tight = planned(method, free.compute_delay_s + 0.5 * free.upload_delay_s, max_delay_s=limit_s)
    assert tight.upload_delay_s < 0.5 * free.upload_delay_s
    assert tight.num_selected > 0


@pytest.mark.parametrize("method", SERVING)
def test_a_method_that_serves_what_it_is_given_runs_into_the_deadline(method: str) -> None:
    free = planned(method, None)
    same = planned(method, free.compute_delay_s + 0.1 * free.upload_delay_s)
    assert same.block_of_device.tolist() == free.block_of_device.tolist()
    assert same.transmit_power_w.tolist() == free.transmit_power_w.tolist()
