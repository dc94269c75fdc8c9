"""What a cell answers to a plan: joules and seconds worked out by hand, and uploads that are lost."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from fedwave.allocation import METHODS, Allocation, account, total_cost
from fedwave.allocation.solution import Status
from fedwave.errors import ProblemError
from fedwave.experiments.schemes import SCHEMES
from fedwave.rng import Stream, generator
from fedwave.server import Outcome, Plan, RoundCosts, Work, problem_of_cell
from fedwave.simulation.cell_world import CellWorld
from fedwave.wireless.cell import Cell
from fedwave.wireless.delivery import UploadFate
from fedwave.wireless.settings.load import load_cell, load_cell_config
from tests.server.radios import (
    CONTRIBUTION,
    ETA_2,
    GREEDY,
    GREEDY_RADIO,
    OPTIMAL_RADIO,
    SNR_3,
    cell_planner,
    play,
    random_radio,
)
from tests.simulation.hand_cell import HandCell, hand_cell

# By hand, of the plan in tests/server/test_cell_planner.py: nu = 1/2 and 1, SNR 1 and 3, rate 1 and 2.
COMPUTE_TIME_S = [8.0, 4.0]  # 4 / nu
COMPUTE_ENERGY_J = [4 * SNR_3, SNR_3 / 4]  # iota / 2 * 4 * nu^2
UPLOAD_TIME_S = [1.0, 0.5]
UPLOAD_ENERGY_J = [1 / 3, 1.5]


def greedy_cell(folder: Path, **settings: Any) -> HandCell:
    return hand_cell(folder, GREEDY_RADIO, **{**GREEDY, **settings})


def test_greedy_on_two_devices_costs_what_a_hand_works_out(tmp_path: Path) -> None:
    played = greedy_cell(tmp_path).play([5.0, 4.0])
    costs = played.costs
    assert played.selected == played.received == [0, 1]
    assert played.outcome.fate.tolist() == [UploadFate.ARRIVED] * 2
    assert_allclose(costs.compute_time_s, COMPUTE_TIME_S, rtol=1e-12)
    assert_allclose(costs.compute_energy_j, COMPUTE_ENERGY_J, rtol=1e-12)
    assert_allclose(costs.upload_time_s, UPLOAD_TIME_S, rtol=1e-8)
    assert_allclose(costs.upload_energy_j, UPLOAD_ENERGY_J, rtol=1e-8)
    assert costs.delay_s == pytest.approx(8.0 + 1.0)  # Eq. (31)
    energy = sum(COMPUTE_ENERGY_J) + sum(UPLOAD_ENERGY_J)
    assert costs.energy_j == pytest.approx(energy)  # Eq. (30)
    assert not costs.report_time_s.any()
    assert not costs.report_energy_j.any()
    assert not costs.idle_energy_j.any()


@pytest.mark.parametrize("gains_per_block", [False, True])
def test_the_optimum_on_two_devices_costs_what_a_hand_works_out(
    tmp_path: Path, gains_per_block: bool
) -> None:
    gain = [[3.0, 3.0], [7.0, 7.0]] if gains_per_block else [3.0, 7.0]
    cell = hand_cell(tmp_path, {**OPTIMAL_RADIO, "channel_gain": gain}, delay_weight=ETA_2)
    costs = cell.play([100.0, 90.0]).costs
    assert_allclose(costs.compute_time_s, [8.0, 8.0], rtol=1e-12)
    assert_allclose(costs.compute_energy_j, [1.5 * ETA_2, 2.5 * ETA_2], rtol=1e-12)
    assert_allclose(costs.upload_time_s, [0.5, 0.5], rtol=1e-7)
    assert_allclose(costs.upload_energy_j, [0.5, 3 / 7], rtol=1e-7)
    assert costs.delay_s == pytest.approx(8.5)
    assert costs.energy_j == pytest.approx(4 * ETA_2 + 0.5 + 3 / 7)


def test_without_an_energy_weight_everything_runs_as_fast_as_the_slowest_allows(tmp_path: Path) -> None:
    radio = {**OPTIMAL_RADIO, "max_power_w": [1.0, 2.0]}
    costs = hand_cell(tmp_path, radio, energy_weight=0.0).play([100.0, 90.0]).costs
    assert costs.delay_s == pytest.approx(4.0 + 0.5)  # 4 cycles at nu_max = 1; SNR h p / 1 = 3
    assert_allclose(costs.compute_time_s, [4.0, 4.0])


def test_the_number_of_local_steps_multiplies_the_work(tmp_path: Path) -> None:
    for num_local_steps, time_s in ((1, [4.0, 2.0]), (3, [12.0, 6.0])):
        costs = greedy_cell(tmp_path, num_local_steps=num_local_steps).play([5.0, 4.0]).costs
        assert_allclose(costs.compute_time_s, time_s)


def test_a_plan_written_by_hand_costs_what_the_equations_say() -> None:
    """Nothing is one, a block is free, one device computes in vain and one does not compute."""
    cell = load_cell(
        "paper-redrawn",
        num_devices=4,
        seed=3,
        overrides={"num_blocks": 3, "bandwidth_hz": 1.5, "noise_psd_w_per_hz": 0.75},
    )
    samples = np.array([11, 12, 13, 14])
    world = CellWorld(
        cell=cell,
        terms=replace(cell.terms, report_bits=0.25),
        work=Work(model_bits=2.5, num_local_steps=5, num_samples=samples),
        seed=0,
        idle_power_w=0.125,
    )
    draw, fleet = world.channel(6), cell.fleet
    assert not np.array_equal(draw.channel_gain, world.channel(7).channel_gain)
    power = 0.5 * fleet.max_power_w * [1, 0, 1, 0]
    frequency = 0.5 * fleet.max_frequency_hz
    plan = Plan(
        selected=np.array([0, 2]),
        allocation=Allocation(
            method="by hand",
            block_of_device=np.array([2, -1, 1, -1]),
            transmit_power_w=power,
            cpu_frequency_hz=frequency,
            contribution=0.0,
            energy_j=0.0,
            compute_delay_s=0.0,
            upload_delay_s=0.0,
            objective=0.0,
            status=Status.FEASIBLE,
        ),
    )
    reports = play(cell_planner(fleet, 3, policy="round-robin", num_selected=3), [1.0] * 4, 0, draw).reports
    outcome = world.answer(6, plan, reports, draw)
    costs = outcome.costs
    assert costs is not None
    assert outcome.received.tolist() == [0, 2]

    noise = draw.interference_w + 1.5 * 0.75
    compute, report, upload = np.zeros(4), np.zeros(4), np.zeros(4)
    for device in (0, 1, 2):  # three report at once, device i on block i
        compute[device] = 5 * fleet.cycles_per_sample[device] * samples[device] / frequency[device]
        full_snr = fleet.max_power_w[device] * draw.channel_gain[device] / noise[device]
        report[device] = 0.25 / (1.5 * math.log2(1 + full_snr))
    for device, block in ((0, 2), (2, 1)):
        snr = power[device] * draw.channel_gain[device] / noise[block]
        upload[device] = 2.5 / (1.5 * math.log2(1 + snr))
    delay = compute.max() + report.max() + upload.max()
    assert_allclose(costs.compute_time_s, compute, rtol=1e-12)
    assert_allclose(
        costs.compute_energy_j, fleet.capacitance / 2 * compute * frequency**3 * [1, 1, 1, 0], rtol=1e-12
    )
    assert_allclose(costs.report_time_s, report, rtol=1e-12)
    assert_allclose(costs.report_energy_j, fleet.max_power_w * report, rtol=1e-12)
    assert_allclose(costs.upload_time_s, upload, rtol=1e-12)
    assert_allclose(costs.upload_energy_j, power * upload, rtol=1e-12)
    assert costs.delay_s == pytest.approx(delay, rel=1e-12)
    idle = delay - compute - report - upload
    assert_allclose(costs.idle_time_s, idle, rtol=1e-12, atol=1e-12)
    assert_allclose(costs.idle_energy_j, 0.125 * idle, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("scheme", ["ural", "ural-ives"])
@pytest.mark.parametrize("num_blocks", [1, 4, 12])
def test_the_world_charges_what_problem_p_counts(tmp_path: Path, scheme: str, num_blocks: int) -> None:
    cell = hand_cell(tmp_path, random_radio(num_blocks=num_blocks), method=SCHEMES[scheme].method)
    played = cell.play(CONTRIBUTION)
    problem = problem_of_cell(
        cell.world.cell, CONTRIBUTION, num_samples=np.resize([4, 8], 9), num_local_steps=2
    )
    value = sum(CONTRIBUTION[i] for i in played.selected) - played.costs.energy_j - played.costs.delay_s
    assert value == pytest.approx(total_cost(problem, played.allocation), rel=1e-12)


def test_who_does_not_compute_spends_nothing(tmp_path: Path) -> None:
    played = hand_cell(tmp_path, random_radio(), method="greedy", policy="uniform").play(CONTRIBUTION, 7)
    asked = played.planned.asked
    others = np.setdiff1d(np.arange(9), asked)
    assert len(others) == 5
    assert not played.costs.device_energy_j[others].any()
    assert not played.costs.compute_time_s[others].any()
    assert (played.costs.compute_energy_j[asked] > 0).all()


def test_when_everyone_computes_all_pay_for_it_and_the_uploads_stay_the_same(tmp_path: Path) -> None:
    few, everybody = (
        hand_cell(
            tmp_path, random_radio(), method="greedy", policy="uniform", everyone_computes=also_others
        ).play(CONTRIBUTION)
        for also_others in (False, True)
    )
    assert few.selected == everybody.selected
    assert (everybody.costs.compute_energy_j > 0).all()
    assert_allclose(few.costs.upload_energy_j, everybody.costs.upload_energy_j)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_is_played_within_its_limits(tmp_path: Path, method: str) -> None:
    limits = {"max_delay_s": 50.0, "max_energy_j": 30.0}
    played = hand_cell(tmp_path, random_radio(), method=method, **limits).play(CONTRIBUTION)
    assert played.costs.upload_time_s.max() <= 50.0
    assert played.costs.upload_energy_j.max() <= 30.0
    assert np.flatnonzero(played.costs.upload_time_s).tolist() == played.selected


# Reports and idling -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("num_blocks", "phase_s"), [(2, 0.1), (1, 0.1 + 0.04)])
def test_reports_take_turns_at_full_power_before_the_uploads(
    tmp_path: Path, num_blocks: int, phase_s: float
) -> None:
    # At full power device 0 has SNR 1, rate 1; device 1 has SNR 2^2.5 - 1, rate 2.5.
    radio = {**GREEDY_RADIO, "interference_w": [0.0] * num_blocks, "max_power_w": [1 / 3, 2**2.5 - 1]}
    costs = hand_cell(tmp_path, radio, report_bits=0.1, **GREEDY).play([5.0, 4.0]).costs
    assert_allclose(costs.report_time_s, [0.1, 0.04])
    assert_allclose(costs.report_energy_j, [0.1 / 3, 0.04 * (2**2.5 - 1)])
    assert costs.delay_s == pytest.approx(8.0 + phase_s + 1.0)
    assert costs.energy_j == pytest.approx(
        costs.compute_energy_j.sum() + 0.1 / 3 + 0.04 * (2**2.5 - 1) + costs.upload_energy_j.sum()
    )


def test_a_turn_of_reports_lasts_as_long_as_its_slowest_on_its_own_block(tmp_path: Path) -> None:
    # Three devices, two blocks: 0 and 1 first, then 2 alone on block 0. Block 1 has noise 3.
    radio = {
        "channel_gain": [[1.0, 9.0], [9.0, 3.0], [7.0, 9.0]],
        "interference_w": [0.0, 2.0],
        "max_power_w": [1.0, 1.0, 1.0],
        "max_frequency_hz": [1.0, 1.0, 1.0],
        "capacitance": [0.0, 0.0, 0.0],
        "cycles_per_sample": [0.0, 0.0, 0.0],
    }
    costs = hand_cell(tmp_path, radio, report_bits=1.0).play([5.0, 5.0, 5.0]).costs
    assert_allclose(costs.report_time_s, [1.0, 1.0, 1 / 3])  # SNR 1, 1, 7
    assert costs.delay_s == pytest.approx(1.0 + 1 / 3 + costs.upload_time_s.max())


def test_a_device_without_a_channel_cannot_hold_up_the_reports(tmp_path: Path) -> None:
    radio = {**GREEDY_RADIO, "channel_gain": [0.0, 1.0]}
    played = hand_cell(tmp_path, radio, report_bits=0.1, idle_power_w=1.0).play([5.0, 400.0])
    assert math.isfinite(played.costs.delay_s)
    assert math.isfinite(played.costs.energy_j)
    assert played.costs.report_time_s[0] == 0.0
    assert played.selected == [1]


@pytest.mark.parametrize(("method", "reports"), [("greedy", False), ("random", False), ("optimal", True)])
def test_a_uniform_draw_needs_no_reports_unless_the_allocation_compares_contributions(
    tmp_path: Path, method: str, reports: bool
) -> None:
    cell = hand_cell(tmp_path, GREEDY_RADIO, method=method, policy="uniform", report_bits=0.1)
    costs = cell.play([50.0, 40.0]).costs
    assert bool(costs.report_time_s.any()) is bool(costs.report_energy_j.any()) is reports


def test_waiting_draws_idle_power_until_the_round_ends(tmp_path: Path) -> None:
    costs = greedy_cell(tmp_path, idle_power_w=0.2).play([5.0, 4.0]).costs
    assert_allclose(costs.idle_time_s, [0.0, 9.0 - 4.0 - 0.5], atol=1e-8)
    assert_allclose(costs.idle_energy_j, [0.0, 0.2 * 4.5], atol=1e-8)
    assert costs.energy_j == pytest.approx(sum(COMPUTE_ENERGY_J) + sum(UPLOAD_ENERGY_J) + 0.9)


def test_nobody_waits_longer_than_the_deadline_nor_less_than_not_at_all(tmp_path: Path) -> None:
    # The round ends at 3 s: both are still computing, and the rest of it is not waiting.
    costs = greedy_cell(tmp_path, idle_power_w=0.2, losses={"deadline_s": 3.0}).play([5.0, 4.0]).costs
    assert costs.idle_time_s.tolist() == [0.0, 0.0]
    costs = greedy_cell(tmp_path, idle_power_w=0.2, losses={"deadline_s": 8.75}).play([5.0, 4.0]).costs
    assert_allclose(costs.idle_time_s, [0.0, 8.75 - 4.5], atol=1e-8)


# Uploads that do not arrive ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("losses", "received", "fate", "delay_s", "sent_s"),
    [
        # Device 0 needs 8 + 1 s, device 1 8 + 0.5 s; at the round's end whoever is late stops sending.
        ({"deadline_s": 8.75}, [1], UploadFate.LATE, 8.75, [0.75, 0.5]),
        ({"deadline_s": 8.25}, [], UploadFate.LATE, 8.25, [0.25, 0.25]),
        ({"deadline_s": 3.0}, [], UploadFate.LATE, 3.0, [0.0, 0.0]),  # uploads would start at 8 s
        ({"outage_snr_db": 3.0}, [1], UploadFate.OUTAGE, 9.0, UPLOAD_TIME_S),  # SNR 1 is 0 dB, 3 is 4.8 dB
        ({"outage_snr_db": 5.0}, [], UploadFate.OUTAGE, 9.0, UPLOAD_TIME_S),
        ({"packet_error_waterfall": 1e6}, [], UploadFate.PACKET_ERROR, 9.0, UPLOAD_TIME_S),
        ({"packet_error_waterfall": 1e-12}, [0, 1], UploadFate.PACKET_ERROR, 9.0, UPLOAD_TIME_S),
    ],
)
def test_a_lost_upload_costs_its_energy_and_time_until_the_rounds_end(
    tmp_path: Path,
    losses: dict[str, float],
    received: list[int],
    fate: UploadFate,
    delay_s: float,
    sent_s: list[float],
) -> None:
    played = greedy_cell(tmp_path, losses=losses).play([5.0, 4.0])
    assert played.selected == [0, 1]
    assert played.received == received
    assert played.outcome.fate.tolist() == [
        UploadFate.ARRIVED if device in received else fate for device in (0, 1)
    ]
    power_w = [1 / 3, 3.0]  # SNR 1 at a gain of 3, SNR 3 at a gain of 1
    assert_allclose(played.costs.upload_energy_j, np.multiply(power_w, sent_s), rtol=1e-8)
    assert_allclose(played.costs.upload_time_s, sent_s, rtol=1e-8)
    assert played.costs.delay_s == pytest.approx(delay_s)


def test_an_outage_is_decided_by_the_noise_of_the_devices_own_block(tmp_path: Path) -> None:
    # Equal devices at full power: SNR 3 on the clean block, 3/4 on the other.
    radio = {
        **GREEDY_RADIO,
        "channel_gain": [3.0, 3.0],
        "max_power_w": [1.0, 1.0],
        "interference_w": [0.0, 3.0],
    }
    cell = hand_cell(tmp_path, radio, method="greedy", energy_weight=0.0, losses={"outage_snr_db": 0.0})
    for round_index in range(4):
        played = cell.play([5.0, 4.0], round_index)
        assert played.received == np.flatnonzero(played.allocation.block_of_device == 0).tolist()
        assert played.count(UploadFate.OUTAGE) == 1


def test_an_upload_that_ends_on_the_deadline_arrives(tmp_path: Path) -> None:
    assert greedy_cell(tmp_path, losses={"deadline_s": 9.0 + 1e-9}).play([5.0, 4.0]).received == [0, 1]


def test_the_deadline_counts_the_reports(tmp_path: Path) -> None:
    cell = greedy_cell(tmp_path, report_bits=0.5, losses={"deadline_s": 9.2})
    assert cell.play([5.0, 4.0]).received == [1]  # device 0: 8 + 0.5 + 1 s


def test_who_drops_out_sends_nothing_but_the_server_waits_for_its_slot(tmp_path: Path) -> None:
    played = greedy_cell(tmp_path, losses={"dropout_probability": 1.0}).play([5.0, 4.0])
    assert played.received == []
    assert played.count(UploadFate.DROPPED_OUT) == 2
    assert not played.costs.upload_energy_j.any()
    assert not played.costs.upload_time_s.any()
    assert_allclose(played.costs.compute_energy_j, COMPUTE_ENERGY_J)
    assert played.costs.delay_s == pytest.approx(9.0)
    assert_allclose(played.costs.idle_time_s, [1.0, 5.0])  # what is left of 9 s after computing


def test_dropouts_and_packet_errors_follow_the_luck_of_seed_and_round(tmp_path: Path) -> None:
    losses = {"dropout_probability": 0.3, "packet_error_waterfall": 0.8}
    cell = greedy_cell(tmp_path, seed=11, losses=losses)
    fates = set()
    for round_index in range(40):
        played = cell.play([5.0, 4.0], round_index)
        dropout_luck, packet_luck = generator(11, Stream.UPLOAD_LOSS, round_index).random((2, 2))
        leaves = dropout_luck < 0.3
        fails = packet_luck < 1 - np.exp(-0.8 / np.array([1.0, 3.0]))  # SNR 1 and 3
        assert played.received == np.flatnonzero(~leaves & ~fails).tolist()
        assert played.count(UploadFate.DROPPED_OUT) == leaves.sum()
        assert played.count(UploadFate.PACKET_ERROR) == (fails & ~leaves).sum()
        assert_allclose(played.costs.upload_energy_j, np.where(leaves, 0.0, UPLOAD_ENERGY_J), rtol=1e-8)
        fates.add(tuple(played.received))
    assert len(fates) == 4


def test_when_nobody_uploads_the_devices_still_computed(tmp_path: Path) -> None:
    played = hand_cell(tmp_path, GREEDY_RADIO, energy_weight=1e6).play([5.0, 4.0])
    assert played.selected == played.received == played.outcome.fate.tolist() == []
    assert played.costs.upload_energy_j.sum() == 0.0
    assert played.costs.energy_j > 0.0
    assert played.costs.delay_s == pytest.approx(played.costs.compute_time_s.max())


# A deadline, planned for or not -----------------------------------------------------------------------------


def paper_round(
    method: str, deadline_s: float | None, *, report_bits: float = 0.0
) -> tuple[Plan, Outcome, RoundCosts]:
    losses = {} if deadline_s is None else {"losses": {"deadline_s": deadline_s}}
    cell = load_cell("paper", num_devices=30, overrides=losses)
    planner = cell_planner(
        cell.fleet, cell.num_blocks, method=method, deadline_s=deadline_s, report_bits=report_bits
    )
    terms = replace(cell.terms, report_bits=report_bits)
    world = CellWorld(cell=cell, terms=terms, work=planner.work, seed=0)
    worth = np.random.default_rng(0).uniform(100.0, 900.0, 30).tolist()
    planned = play(planner, worth, 0, world.channel(0))
    outcome = world.answer(0, planned.plan, planned.reports, world.channel(0))
    assert outcome.costs is not None
    return planned.plan, outcome, outcome.costs


@pytest.mark.parametrize("method", ["optimal", "ives", "chen2020"])
@pytest.mark.parametrize("report_bits", [0.0, 0.05])
def test_a_method_that_plans_meets_the_deadline_with_every_upload(method: str, report_bits: float) -> None:
    _, _, free = paper_round(method, None, report_bits=report_bits)
    upload_s = float(free.upload_time_s.max())
    deadline_s = free.delay_s - 0.4 * upload_s  # cuts the upload phase to 60 %
    plan, outcome, costs = paper_round(method, deadline_s, report_bits=report_bits)
    assert len(plan.selected) > 0
    assert np.array_equal(outcome.received, plan.selected)
    assert costs.delay_s <= deadline_s
    assert costs.upload_time_s.max() < upload_s


@pytest.mark.parametrize("method", sorted(n for n, method in METHODS.items() if not method.plans_for_risks))
def test_a_baseline_loses_what_is_late_and_pays_until_the_rounds_end(method: str) -> None:
    plan, _, free = paper_round(method, None)
    finish_s = free.compute_time_s.max() + free.upload_time_s[plan.selected]
    deadline_s = float(np.median(finish_s))
    cut_plan, cut, costs = paper_round(method, deadline_s)
    assert np.array_equal(cut_plan.selected, plan.selected)
    assert np.array_equal(cut.received, plan.selected[finish_s <= deadline_s])
    assert 0 < len(cut.received) < len(cut_plan.selected)
    assert costs.delay_s == deadline_s
    left_s = deadline_s - free.compute_time_s.max()
    on_air_s = np.minimum(free.upload_time_s, left_s)
    assert_allclose(costs.upload_time_s, on_air_s, rtol=1e-12)
    assert plan.allocation is not None
    assert_allclose(costs.upload_energy_j, plan.allocation.transmit_power_w * on_air_s, rtol=1e-12)
    in_time = cut.received  # who arrives pays what it paid without a deadline
    assert np.array_equal(costs.upload_energy_j[in_time], free.upload_energy_j[in_time])
    assert costs.upload_energy_j.sum() < free.upload_energy_j.sum()


def test_a_deadline_that_does_not_bind_costs_nothing() -> None:
    plan, _, free = paper_round("optimal", None)
    same_plan, same, costs = paper_round("optimal", 2.0 * free.delay_s)
    assert np.array_equal(same_plan.selected, plan.selected)
    assert np.array_equal(same.received, plan.selected)
    assert costs.delay_s == free.delay_s


# Contract ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", [name for name, scheme in SCHEMES.items() if scheme.method])
def test_a_played_round_is_a_function_of_plan_seed_and_round_alone(tmp_path: Path, scheme: str) -> None:
    losses = {"dropout_probability": 0.3, "packet_error_waterfall": 0.1}
    cell = hand_cell(
        tmp_path,
        random_radio(),
        method=SCHEMES[scheme].method,
        policy=SCHEMES[scheme].policy,
        losses=losses,
        idle_power_w=0.1,
        report_bits=0.1,
    )
    first = cell.play(CONTRIBUTION, 3)
    cell.play(CONTRIBUTION, 0)
    again = cell.play(CONTRIBUTION, 3)
    assert first.outcome.fate.tolist() == again.outcome.fate.tolist()
    assert first.costs.links is not None
    assert again.costs.links is not None
    for one, other in ((first.costs, again.costs), (first.costs.links, again.costs.links)):
        for name in vars(one).keys() - {"links"}:
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)


def test_a_plan_without_blocks_or_a_round_without_a_channel_cannot_be_played(tmp_path: Path) -> None:
    cell = greedy_cell(tmp_path)
    played = cell.play([5.0, 4.0])
    reports, channel = played.planned.reports, cell.world.channel(0)
    for plan, air in ((Plan(selected=np.array([0])), channel), (played.planned.plan, None)):
        with pytest.raises(
            ProblemError, match="a cell answers plans with blocks and powers, got none. Use a C"
        ):
            cell.world.answer(0, plan, reports, air)


def played_with_power(cell: HandCell, power_w: list[float]) -> Outcome:
    channel = cell.world.channel(0)
    planned = play(cell.planner, [5.0, 4.0], 0, channel)
    allocation = replace(planned.allocation, transmit_power_w=np.array(power_w))
    return cell.world.answer(0, replace(planned.plan, allocation=allocation), planned.reports, channel)


def test_an_upload_that_never_ends_is_refused_unless_there_is_a_deadline(tmp_path: Path) -> None:
    with pytest.raises(ProblemError, match="upload of device 1 never ends, as its rate is 0 bit/s"):
        played_with_power(greedy_cell(tmp_path), [1.0, 0.0])
    late = played_with_power(greedy_cell(tmp_path, losses={"deadline_s": 20.0}), [1.0, 0.0])
    assert late.fate.tolist() == [UploadFate.ARRIVED, UploadFate.LATE]
    assert late.costs is not None
    assert late.costs.delay_s == 20.0
    assert late.costs.upload_time_s[1] == pytest.approx(20.0 - 8.0)  # all have computed after 8 seconds
    assert late.costs.upload_energy_j[1] == 0.0
    assert late.costs.idle_time_s[0] == pytest.approx(20.0 - 8.0 - late.costs.upload_time_s[0])


def test_reports_and_waiting_are_free_unless_said(tmp_path: Path) -> None:
    world = greedy_cell(tmp_path).world
    plain = CellWorld(cell=world.cell, terms=world.cell.terms, work=world.work, seed=0)
    assert (plain.terms.report_bits, plain.idle_power_w) == (0.0, 0.0)


@pytest.mark.parametrize("cpu", ["fedl", "phone", "single-board", "microcontroller"])
@pytest.mark.parametrize("method", ["optimal", "greedy"])
def test_computing_costs_in_the_world_what_the_allocation_counts(cpu: str, method: str) -> None:
    """The same energy to the last bit, with static power and with energy that no frequency changes."""
    config = load_cell_config("umi-3.5ghz", {"fleet": {"cpu": cpu}})
    cell = Cell.build(config, num_devices=12, seed=4)
    terms = cell.terms
    planner = replace(cell_planner(cell.fleet, cell.num_blocks, method=method, model_bits=1e6), terms=terms)
    assert cell.fleet.static_power_w.any() == (cpu in ("phone", "single-board"))
    assert cell.fleet.joules_per_cycle.any() == (cpu == "microcontroller")
    contribution = np.linspace(1.0, 2.0, 12)
    planned = play(planner, contribution.tolist(), channel=cell.draw(0))
    world = CellWorld(cell=cell, terms=terms, work=planner.work, seed=4)
    costs = world.answer(0, planned.plan, planned.reports, cell.draw(0)).costs
    assert costs is not None
    problem = problem_of_cell(
        cell, contribution, num_samples=planner.work.num_samples, num_local_steps=2, model_bits=1e6
    )
    counted = account(problem, planned.allocation).compute_energy_j
    assert (counted > 0).all()
    assert costs.compute_energy_j.tolist() == counted.tolist()
