"""Planning for a round's deadline: methods that choose share the time between computing and uploads."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq

from fedwave.allocation import METHODS, Allocation, AllocationProblem, Method, Status, allocate
from fedwave.rng import Stream, generator
from fedwave.server import problem_of_cell
from fedwave.wireless.settings.load import load_cell
from tests.server.radios import ETA_2, OPTIMAL_RADIO, SNR_3, cell_planner, play, radio_planner

CELL = load_cell("paper", num_devices=30, seed=0)
CHANNEL = CELL.draw(0)
WORTH = np.random.default_rng(0).uniform(100.0, 900.0, 30)
CHOOSING = sorted(name for name, method in METHODS.items() if not method.serves_given_devices)
SERVING = sorted(name for name, method in METHODS.items() if not method.plans_for_risks)


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
    # The slowest device computes at full frequency anyhow: there is no time to be had from the CPUs.
    free = planned(method, None, report_bits=report_bits)
    left_s = 0.6 * free.upload_delay_s
    deadline_s = free.compute_delay_s + reports_s(report_bits) + left_s
    cut = planned(method, deadline_s, report_bits=report_bits)
    assert cut.num_selected > 0
    assert cut.compute_delay_s == free.compute_delay_s
    assert cut.upload_delay_s < left_s
    # The plan is early by two billionths of the whole round.
    problem = problem_of_cell(
        CELL,
        WORTH,
        num_samples=np.resize([4, 8], 30),
        num_local_steps=2,
        max_delay_s=left_s - 2e-9 * deadline_s,
    )
    expected = allocate(problem, method)
    assert cut.selected.tolist() == expected.selected.tolist()
    assert cut.objective == pytest.approx(expected.objective, rel=1e-9)


def best_upload_s(left_s: float) -> float:
    """Return by hand how two devices of OPTIMAL_RADIO share what is left of a round with their CPUs.

    T seconds of computing cost (3 + 5) eta_2 4^3 / (2 T^2), an upload of delta seconds at the common SNR
    x = 2^(1/delta) - 1 costs 13/21 x delta, and eta_2 (T + delta) is fixed. Where both pull alike,
    512 eta_2 / T^3 = 13/21 ((1 + x) ln(1 + x) - x).
    """

    def pull(upload_s: float) -> float:
        snr = 2 ** (1 / upload_s) - 1
        upload = (1 + snr) * math.log(1 + snr) - snr
        return float(512 * SNR_3 / (left_s - upload_s) ** 3 - upload)

    return float(brentq(pull, 0.3, 0.6, xtol=1e-14))


@pytest.mark.parametrize("report_bits", [0.0, 0.1])
@pytest.mark.parametrize("left_s", [8.45, 8.0, 7.0])
def test_two_devices_share_all_the_time_that_reports_leave_with_their_cpus(
    left_s: float, report_bits: float
) -> None:
    # Free, both compute for 8 s and upload for 0.5 s: with 8 s even the computing alone would fill the round.
    phase_s = report_bits / math.log2(5.5)  # at full power they have SNR 4.5 and 7
    deadline_s = left_s + phase_s
    planner = radio_planner(OPTIMAL_RADIO, delay_weight=ETA_2, deadline_s=deadline_s, report_bits=report_bits)
    allocation = planner.play([100.0, 90.0]).allocation
    assert allocation.status is Status.OPTIMAL
    assert allocation.selected.tolist() == [0, 1]
    assert allocation.upload_delay_s == pytest.approx(best_upload_s(left_s), rel=1e-7)
    assert allocation.compute_delay_s == pytest.approx(left_s - best_upload_s(left_s), rel=1e-7)
    assert deadline_s * (1 - 4e-9) < allocation.delay_s + phase_s < deadline_s
    upload_s, compute_s = allocation.upload_delay_s, allocation.compute_delay_s
    energy_j = 256 * ETA_2 / compute_s**2 + 13 / 21 * (2 ** (1 / upload_s) - 1) * upload_s
    assert allocation.objective == pytest.approx(190 - energy_j - ETA_2 * (compute_s + upload_s), rel=1e-9)


def test_the_shared_time_is_better_than_any_other_share() -> None:
    def cost(upload_s: float) -> float:
        return 256 * ETA_2 / (8.0 - upload_s) ** 2 + 13 / 21 * (2 ** (1 / upload_s) - 1) * upload_s

    best_s = best_upload_s(8.0)
    assert all(cost(best_s) <= cost(other_s) for other_s in np.linspace(1 / math.log2(5.5), 2.0, 1001))


def test_at_full_power_the_cpus_have_what_the_upload_leaves() -> None:
    # Device 0 reaches SNR 4.5 and no more; computing would like even more of the 4.45 s.
    radio = radio_planner(OPTIMAL_RADIO, delay_weight=ETA_2, deadline_s=4.45)
    allocation = radio.play([100.0, 90.0]).allocation
    assert allocation.selected.tolist() == [0, 1]
    assert allocation.upload_delay_s == pytest.approx(1 / math.log2(5.5), rel=1e-8)
    assert allocation.compute_delay_s == pytest.approx(4.45 - 1 / math.log2(5.5), rel=1e-8)


def test_who_cannot_upload_in_time_with_all_cpus_at_full_speed_stays_silent() -> None:
    # 4 s of computing at full frequency leave 0.4 s; device 0 needs 1 / log2(5.5) = 0.407 s on block 0.
    radio = radio_planner(OPTIMAL_RADIO, delay_weight=ETA_2, deadline_s=4.4)
    assert radio.play([100.0, 90.0]).allocation.selected.tolist() == [1]


@pytest.mark.parametrize("method", sorted({*CHOOSING} - {"ives"}))
def test_a_deadline_that_does_not_bind_changes_nothing(method: str) -> None:
    free = planned(method, None)
    for deadline_s in (2.0 * free.delay_s, free.delay_s * (1 + 1e-8)):
        same = planned(method, deadline_s)
        assert same.block_of_device.tolist() == free.block_of_device.tolist()
        assert same.transmit_power_w.tolist() == free.transmit_power_w.tolist()


def test_ives_climbs_as_before_under_a_deadline_that_its_first_delay_meets() -> None:
    # Eq. (50): it starts from the delay of the weakest device on the worst block, not from where it ends.
    free = planned("ives", None)
    weakest_snr = (CELL.fleet.max_power_w * CHANNEL.channel_gain).min() / (1.0 + CHANNEL.interference_w.max())
    first_s = 1.0 / math.log2(1.0 + weakest_snr)
    assert first_s > free.upload_delay_s
    same = planned("ives", (free.compute_delay_s + first_s) * (1 + 1e-8))
    assert same.block_of_device.tolist() == free.block_of_device.tolist()
    assert same.transmit_power_w.tolist() == free.transmit_power_w.tolist()
    # An earlier one moves the start, so the fixed point may be another: in time, if not the same.
    moved = planned("ives", free.delay_s * (1 + 1e-8))
    assert moved.num_selected > 0
    assert moved.delay_s <= free.delay_s * (1 + 1e-8)


@pytest.mark.parametrize("method", CHOOSING)
def test_when_computing_alone_takes_too_long_nobody_uploads_and_the_plan_says_why(method: str) -> None:
    slowest_s = planned(method, None).compute_delay_s
    workload = 2 * CELL.fleet.cycles_per_sample * np.resize([4, 8], 30)
    fastest_s = (workload / CELL.fleet.max_frequency_hz).max()
    assert slowest_s == pytest.approx(fastest_s)  # one CPU runs at its full frequency: no time to be had
    late = planned(method, 0.9 * fastest_s)
    assert late.num_selected == 0
    assert late.status is Status.INFEASIBLE
    device = int((workload / CELL.fleet.max_frequency_hz).argmax())
    assert late.reason.startswith(f"device {device} cannot compute by {0.9 * fastest_s:.6g} s even at full")


def test_a_method_that_draws_meets_the_luck_of_the_round_once(monkeypatch: pytest.MonkeyPatch) -> None:
    luck: list[float] = []

    def drawing(problem: AllocationProblem, *, rng: np.random.Generator, may_upload: Any) -> Allocation:
        luck.append(rng.random())
        return allocate(problem, "ives", selected=np.flatnonzero(may_upload))

    monkeypatch.setitem(METHODS, "drawing", Method(drawing, serves_given_devices=False))
    radio = radio_planner(OPTIMAL_RADIO, method="drawing", delay_weight=ETA_2, deadline_s=8.45, seed=6)
    for round_index in (3, 4, 3):
        radio.play([100.0, 90.0], round_index)
    # The deadline is part of the problem: one plan, one draw.
    assert luck == [generator(6, Stream.ALLOCATION, round_index).random() for round_index in (3, 4, 3)]


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
