"""A round over a cell: energies and times worked out by hand, who is selected, what is lost."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from fedwave.allocation import METHODS, AllocationProblem, allocate, total_cost
from fedwave.rng import Stream, generator
from fedwave.simulation.cell_scheduler import SCHEMES, CellScheduler
from fedwave.simulation.contribution_scale import ContributionScale
from fedwave.simulation.scheduler import Reports
from tests.simulation.hand_cell import SNR_3, hand_scheduler, play

# Both devices have tau c D = 4 cycles of work. Device 0 alone is at its power limit.
GREEDY_CELL: dict[str, Any] = {
    "channel_gain": [3.0, 1.0],
    "interference_w": [0.0, 0.0],
    "max_power_w": [1 / 3, 5.0],
    "max_frequency_hz": [2.0, 1.0],
    "capacitance": [8 * SNR_3, SNR_3 / 8],
    "cycles_per_sample": [0.5, 0.25],
}
GREEDY = {"method": "greedy", "delay_weight": SNR_3, "cell": GREEDY_CELL}


def with_losses(**losses: float) -> dict[str, Any]:
    return {**GREEDY, "cell": {**GREEDY_CELL, "losses": losses}}


# By hand, Eq. (55): nu = (eta_2 / iota)^(1/3) = 1/2 on device 0; 2, cut to nu_max = 1, on device 1.
COMPUTE_TIME_S = [8.0, 4.0]  # 4 / nu
COMPUTE_ENERGY_J = [4 * SNR_3, SNR_3 / 4]  # iota / 2 * 4 * nu^2
# Eq. (56): device 0 wants an SNR above 3 and is cut to h p_max = 1, rate 1; device 1 takes SNR 3, rate 2.
POWER_W = [1 / 3, 3.0]
UPLOAD_TIME_S = [1.0, 0.5]
UPLOAD_ENERGY_J = [1 / 3, 1.5]


def test_greedy_on_two_devices_costs_what_a_hand_works_out(tmp_path: Path) -> None:
    schedule = play(hand_scheduler(tmp_path, **GREEDY), [5.0, 4.0])
    costs = schedule.costs
    assert costs is not None
    assert schedule.selected.tolist() == schedule.received.tolist() == [0, 1]
    assert_allclose(costs.compute_time_s, COMPUTE_TIME_S, rtol=1e-12)
    assert_allclose(costs.compute_energy_j, COMPUTE_ENERGY_J, rtol=1e-12)
    assert_allclose(schedule.device_columns["transmit_power_w"], POWER_W, rtol=1e-8)
    assert_allclose(costs.upload_time_s, UPLOAD_TIME_S, rtol=1e-8)
    assert_allclose(costs.upload_energy_j, UPLOAD_ENERGY_J, rtol=1e-8)
    assert costs.delay_s == pytest.approx(8.0 + 1.0)  # Eq. (31)
    energy = sum(COMPUTE_ENERGY_J) + sum(UPLOAD_ENERGY_J)
    assert costs.energy_j == pytest.approx(energy)  # Eq. (30)
    assert schedule.round_columns["objective"] == pytest.approx(9.0 - energy - SNR_3 * 9.0)
    assert not costs.report_time_s.any()
    assert not costs.idle_energy_j.any()
    assert schedule.round_columns["note"] == ""


# (I + B N0) / h of device 0 on block 0 and device 1 on block 1 is 1/3 + 2/7 = 13/21, the other way round
# 2/3 + 1/7 = 17/21. So the first is better, and eta_2 makes its best common SNR 3, rate 2.
ETA_2 = 13 / 21 * SNR_3
OPTIMAL_CELL: dict[str, Any] = {
    "channel_gain": [3.0, 7.0],
    "interference_w": [0.0, 1.0],
    "max_power_w": [1.5, 2.0],
    "max_frequency_hz": [2.0, 1.0],
    "capacitance": [3 * ETA_2, 5 * ETA_2],  # SP1: T^3 = (3 + 5) 4^3, so T = 8 and nu = 1/2
    "cycles_per_sample": [0.5, 0.25],
}


@pytest.mark.parametrize("gains_per_block", [False, True])
def test_the_optimum_on_two_devices_costs_what_a_hand_works_out(
    tmp_path: Path, gains_per_block: bool
) -> None:
    gain = [[3.0, 3.0], [7.0, 7.0]] if gains_per_block else [3.0, 7.0]
    cell = {**OPTIMAL_CELL, "channel_gain": gain}
    schedule = play(hand_scheduler(tmp_path, method="optimal", delay_weight=ETA_2, cell=cell), [100.0, 90.0])
    costs = schedule.costs
    assert costs is not None
    assert schedule.device_columns["block"].tolist() == [0, 1]
    assert_allclose(schedule.device_columns["cpu_frequency_hz"], [0.5, 0.5], rtol=1e-12)
    assert_allclose(costs.compute_time_s, [8.0, 8.0], rtol=1e-12)
    assert_allclose(costs.compute_energy_j, [1.5 * ETA_2, 2.5 * ETA_2], rtol=1e-12)
    assert_allclose(schedule.device_columns["transmit_power_w"], [1.0, 6 / 7], rtol=1e-7)
    assert_allclose(costs.upload_time_s, [0.5, 0.5], rtol=1e-7)
    assert_allclose(costs.upload_energy_j, [0.5, 3 / 7], rtol=1e-7)
    assert costs.delay_s == pytest.approx(8.5)
    energy = 4 * ETA_2 + 0.5 + 3 / 7
    assert costs.energy_j == pytest.approx(energy)
    assert schedule.round_columns["contribution"] == 190.0
    assert schedule.round_columns["objective"] == pytest.approx(190.0 - energy - ETA_2 * 8.5)


def test_without_an_energy_weight_everything_runs_as_fast_as_the_slowest_allows(tmp_path: Path) -> None:
    scheduler = hand_scheduler(
        tmp_path,
        method="optimal",
        energy_weight=0.0,
        cell={**OPTIMAL_CELL, "max_power_w": [1.0, 2.0]},
    )
    schedule = play(scheduler, [100.0, 90.0])
    assert schedule.costs is not None
    assert schedule.costs.delay_s == pytest.approx(4.0 + 0.5)  # 4 cycles at nu_max = 1; SNR h p / 1 = 3
    assert_allclose(schedule.costs.compute_time_s, [4.0, 4.0])
    assert_allclose(schedule.device_columns["transmit_power_w"], [1.0, 6 / 7])


def test_the_number_of_local_steps_multiplies_the_work(tmp_path: Path) -> None:
    times = []
    for num_local_steps in (1, 3):
        scheduler = hand_scheduler(
            tmp_path, method="greedy", num_local_steps=num_local_steps, delay_weight=SNR_3, cell=GREEDY_CELL
        )
        costs = play(scheduler, [5.0, 4.0]).costs
        assert costs is not None
        times.append(costs.compute_time_s)
    assert_allclose(times[0], [4.0, 2.0])
    assert_allclose(times[1], [12.0, 6.0])


# Reports and idling -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("num_blocks", "phase_s"), [(2, 0.1), (1, 0.1 + 0.04)])
def test_reports_take_turns_at_full_power_before_the_uploads(
    tmp_path: Path, num_blocks: int, phase_s: float
) -> None:
    # At full power device 0 has SNR 1, rate 1; device 1 has SNR 2^2.5 - 1, rate 2.5.
    cell = {**GREEDY_CELL, "interference_w": [0.0] * num_blocks, "max_power_w": [1 / 3, 2**2.5 - 1]}
    schedule = play(
        hand_scheduler(tmp_path, method="greedy", delay_weight=SNR_3, report_bits=0.1, cell=cell), [5.0, 4.0]
    )
    costs = schedule.costs
    assert costs is not None
    assert_allclose(costs.report_time_s, [0.1, 0.04])
    assert_allclose(costs.report_energy_j, [0.1 / 3, 0.04 * (2**2.5 - 1)])
    assert costs.delay_s == pytest.approx(8.0 + phase_s + 1.0)
    assert costs.energy_j == pytest.approx(
        costs.compute_energy_j.sum() + 0.1 / 3 + 0.04 * (2**2.5 - 1) + costs.upload_energy_j.sum()
    )


def test_a_turn_of_reports_lasts_as_long_as_its_slowest_on_its_own_block(tmp_path: Path) -> None:
    # Three devices, two blocks: 0 and 1 first, then 2 alone on block 0. Block 1 has noise 3.
    scheduler = hand_scheduler(
        tmp_path,
        method="optimal",
        report_bits=1.0,
        cell={
            "channel_gain": [[1.0, 9.0], [9.0, 3.0], [7.0, 9.0]],
            "interference_w": [0.0, 2.0],
            "max_power_w": [1.0, 1.0, 1.0],
            "max_frequency_hz": [1.0, 1.0, 1.0],
            "capacitance": [0.0, 0.0, 0.0],
            "cycles_per_sample": [0.0, 0.0, 0.0],
        },
    )
    costs = play(scheduler, [5.0, 5.0, 5.0]).costs
    assert costs is not None
    assert_allclose(costs.report_time_s, [1.0, 1.0, 1 / 3])  # SNR 1, 1, 7
    assert costs.delay_s == pytest.approx(1.0 + 1 / 3 + costs.upload_time_s.max())


def test_a_device_without_a_channel_cannot_hold_up_the_reports(tmp_path: Path) -> None:
    cell = {**GREEDY_CELL, "channel_gain": [0.0, 1.0]}
    scheduler = hand_scheduler(tmp_path, method="optimal", report_bits=0.1, idle_power_w=1.0, cell=cell)
    schedule = play(scheduler, [5.0, 400.0])
    costs = schedule.costs
    assert costs is not None
    assert math.isfinite(costs.delay_s)
    assert math.isfinite(costs.energy_j)
    assert costs.report_time_s[0] == 0.0
    assert schedule.selected.tolist() == [1]


@pytest.mark.parametrize(("method", "reports"), [("greedy", False), ("random", False), ("optimal", True)])
def test_a_uniform_draw_needs_no_reports_unless_the_allocation_compares_contributions(
    tmp_path: Path, method: str, reports: bool
) -> None:
    scheduler = hand_scheduler(
        tmp_path, method=method, selection="uniform", report_bits=0.1, cell=GREEDY_CELL
    )
    costs = play(scheduler, [50.0, 40.0]).costs
    assert costs is not None
    assert bool(costs.report_time_s.any()) is reports


def test_waiting_draws_idle_power_until_the_round_ends(tmp_path: Path) -> None:
    costs = play(hand_scheduler(tmp_path, idle_power_w=0.2, **GREEDY), [5.0, 4.0]).costs
    assert costs is not None
    assert_allclose(costs.idle_time_s, [0.0, 9.0 - 4.0 - 0.5], atol=1e-8)
    assert_allclose(costs.idle_energy_j, [0.0, 0.2 * 4.5], atol=1e-8)
    assert costs.energy_j == pytest.approx(sum(COMPUTE_ENERGY_J) + sum(UPLOAD_ENERGY_J) + 0.9)


# Uploads that do not arrive ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("losses", "received", "column", "delay_s"),
    [
        ({"deadline_s": 8.75}, [1], "num_late", 8.75),  # device 0 needs 8 + 1 s, device 1 8 + 0.5 s
        ({"deadline_s": 3.0}, [], "num_late", 3.0),
        ({"outage_snr_db": 3.0}, [1], "num_outage", 9.0),  # SNR 1 is 0 dB, SNR 3 is 4.8 dB
        ({"outage_snr_db": 5.0}, [], "num_outage", 9.0),
        ({"packet_error_waterfall": 1e6}, [], "num_packet_error", 9.0),
        ({"packet_error_waterfall": 1e-12}, [0, 1], "num_packet_error", 9.0),
    ],
)
def test_a_lost_upload_costs_its_energy_and_time(
    tmp_path: Path, losses: dict[str, float], received: list[int], column: str, delay_s: float
) -> None:
    schedule = play(hand_scheduler(tmp_path, **with_losses(**losses)), [5.0, 4.0])
    costs = schedule.costs
    assert costs is not None
    assert schedule.selected.tolist() == [0, 1]
    assert schedule.received.tolist() == received
    assert np.flatnonzero(schedule.device_columns["is_received"]).tolist() == received
    lost = {name: value for name, value in schedule.round_columns.items() if name.startswith("num_")}
    assert lost == {**dict.fromkeys(lost, 0), column: 2 - len(received)}
    assert_allclose(costs.upload_energy_j, UPLOAD_ENERGY_J, rtol=1e-8)
    assert_allclose(costs.upload_time_s, UPLOAD_TIME_S, rtol=1e-8)
    assert costs.delay_s == pytest.approx(delay_s)
    expected = "" if received else "no upload arrived, the model stays as it is"
    assert schedule.round_columns["note"] == expected


def test_an_outage_is_decided_by_the_noise_of_the_devices_own_block(tmp_path: Path) -> None:
    # Equal devices at full power: SNR 3 on the clean block, 3/4 on the other.
    cell = {
        **GREEDY_CELL,
        "channel_gain": [3.0, 3.0],
        "max_power_w": [1.0, 1.0],
        "interference_w": [0.0, 3.0],
        "losses": {"outage_snr_db": 0.0},
    }
    schedule = play(hand_scheduler(tmp_path, method="greedy", energy_weight=0.0, cell=cell), [5.0, 4.0])
    assert schedule.received.tolist() == np.flatnonzero(schedule.device_columns["block"] == 0).tolist()
    assert schedule.round_columns["num_outage"] == 1


def test_an_upload_that_ends_on_the_deadline_arrives(tmp_path: Path) -> None:
    scheduler = hand_scheduler(tmp_path, **with_losses(deadline_s=9.0 + 1e-9))
    assert play(scheduler, [5.0, 4.0]).received.tolist() == [0, 1]


def test_the_deadline_counts_the_reports(tmp_path: Path) -> None:
    scheduler = hand_scheduler(tmp_path, report_bits=0.5, **with_losses(deadline_s=9.2))
    assert play(scheduler, [5.0, 4.0]).received.tolist() == [1]  # device 0: 8 + 0.5 + 1 s


def test_who_drops_out_sends_nothing_but_the_server_waits_for_its_slot(tmp_path: Path) -> None:
    schedule = play(hand_scheduler(tmp_path, **with_losses(dropout_probability=1.0)), [5.0, 4.0])
    costs = schedule.costs
    assert costs is not None
    assert schedule.received.size == 0
    assert schedule.round_columns["num_dropped_out"] == 2
    assert not costs.upload_energy_j.any()
    assert_allclose(costs.compute_energy_j, COMPUTE_ENERGY_J)
    assert costs.delay_s == pytest.approx(9.0)
    assert schedule.round_columns["note"] == "no upload arrived, the model stays as it is"


def test_dropouts_and_packet_errors_follow_the_luck_of_seed_and_round(tmp_path: Path) -> None:
    losses = {"dropout_probability": 0.3, "packet_error_waterfall": 0.8}
    scheduler = hand_scheduler(tmp_path, seed=11, **with_losses(**losses))
    fates = set()
    for round_index in range(40):
        schedule = play(scheduler, [5.0, 4.0], round_index)
        dropout_luck, packet_luck = generator(11, Stream.UPLOAD_LOSS, round_index).random((2, 2))
        leaves = dropout_luck < 0.3
        fails = packet_luck < 1 - np.exp(-0.8 / np.array([1.0, 3.0]))  # SNR 1 and 3
        assert schedule.received.tolist() == np.flatnonzero(~leaves & ~fails).tolist()
        assert schedule.round_columns["num_dropped_out"] == leaves.sum()
        assert schedule.round_columns["num_packet_error"] == (fails & ~leaves).sum()
        assert schedule.costs is not None
        assert_allclose(schedule.costs.upload_energy_j, np.where(leaves, 0.0, UPLOAD_ENERGY_J), rtol=1e-8)
        fates.add(tuple(schedule.received.tolist()))
    assert len(fates) == 4


def test_uploads_that_are_not_worth_it_leave_the_model_and_say_so(tmp_path: Path) -> None:
    scheduler = hand_scheduler(tmp_path, method="optimal", energy_weight=1e6, cell=GREEDY_CELL)
    schedule = play(scheduler, [5.0, 4.0])
    assert schedule.selected.size == schedule.received.size == 0
    note = "nobody uploads, the model stays as it is: no upload is worth its energy and delay"
    assert schedule.round_columns["note"] == note
    assert schedule.costs is not None
    assert schedule.costs.upload_energy_j.sum() == 0.0
    assert schedule.costs.energy_j > 0.0  # they did compute


def test_contributions_that_are_all_negative_leave_the_model_and_say_so(tmp_path: Path) -> None:
    schedule = play(hand_scheduler(tmp_path, method="optimal", cell=GREEDY_CELL), [-5.0, 0.0])
    assert schedule.selected.size == 0
    assert "no device that may upload has a contribution > 0" in schedule.round_columns["note"]


def test_a_limit_that_nobody_can_meet_is_explained_in_the_note(tmp_path: Path) -> None:
    scheduler = hand_scheduler(tmp_path, method="optimal", max_delay_s=0.01, cell=GREEDY_CELL)
    note = play(scheduler, [5.0, 4.0]).round_columns["note"]
    assert "nobody uploads" in note
    assert "cannot finish by 0.01 s even at full power" in note


# Who is selected --------------------------------------------------------------------------------------------


def random_scheduler(
    tmp_path: Path, scheme: str, *, num_devices: int = 9, num_blocks: int = 4, **settings: Any
) -> CellScheduler:
    rng = np.random.default_rng(5)
    method, selection = SCHEMES[scheme]
    cell = {
        "channel_gain": rng.uniform(0.1, 1.0, (num_devices, num_blocks)).tolist(),
        "interference_w": rng.uniform(0.0, 0.8, num_blocks).tolist(),
        "max_power_w": rng.uniform(0.1, 1.0, num_devices).tolist(),
        "max_frequency_hz": rng.uniform(0.1, 2.0, num_devices).tolist(),
        "capacitance": rng.uniform(0.0, 1.0, num_devices).tolist(),
        "cycles_per_sample": rng.uniform(0.0, 0.25, num_devices).tolist(),
    }
    return hand_scheduler(tmp_path, method=method, selection=selection, cell=cell, **settings)


CONTRIBUTION = [30.0, -4.0, 80.0, 55.0, 10.0, 80.0, 2.0, 41.0, 60.0]


@pytest.mark.parametrize("scheme", ["nufm-greedy", "nufm-random"])
@pytest.mark.parametrize("num_blocks", [1, 4, 9, 12])
def test_nufm_serves_the_largest_contributions_one_for_each_block(
    tmp_path: Path, scheme: str, num_blocks: int
) -> None:
    schedule = play(random_scheduler(tmp_path, scheme, num_blocks=num_blocks), CONTRIBUTION)
    ranked = sorted(range(9), key=lambda i: (-CONTRIBUTION[i], i))
    assert schedule.selected.tolist() == sorted(ranked[:num_blocks])
    blocks = schedule.device_columns["block"][schedule.selected]
    assert len(set(blocks.tolist())) == len(blocks) == min(num_blocks, 9)


@pytest.mark.parametrize("scheme", ["ru-greedy", "ru-random"])
@pytest.mark.parametrize("num_blocks", [1, 4, 12])
def test_a_uniform_draw_computes_before_it_knows_contributions(
    tmp_path: Path, scheme: str, num_blocks: int
) -> None:
    scheduler = random_scheduler(tmp_path, scheme, num_blocks=num_blocks)
    computing = scheduler.computing(7)
    schedule = play(scheduler, CONTRIBUTION, 7)
    assert schedule.selected.tolist() == computing.tolist()
    assert len(computing) == min(num_blocks, 9)
    costs = schedule.costs
    assert costs is not None
    others = np.setdiff1d(np.arange(9), computing)
    assert not costs.device_energy_j[others].any()
    assert (costs.compute_energy_j[computing] > 0).all()


def test_the_uniform_draw_is_uniform(tmp_path: Path) -> None:
    scheduler = random_scheduler(tmp_path, "ru-greedy")
    num_rounds = 4000
    count = np.zeros(9)
    for round_index in range(num_rounds):
        count[scheduler.computing(round_index)] += 1
    share = 4 / 9
    standard_error = math.sqrt(num_rounds * share * (1 - share))
    assert np.abs(count - num_rounds * share).max() < 4 * standard_error


def test_everyone_computes_when_asked_though_the_uniform_draw_stays_the_same(tmp_path: Path) -> None:
    few, all_of_them = (
        random_scheduler(tmp_path, "ru-greedy", everyone_computes=asked) for asked in (False, True)
    )
    first, second = play(few, CONTRIBUTION), play(all_of_them, CONTRIBUTION)
    assert all_of_them.computing(0).tolist() == list(range(9))
    assert first.selected.tolist() == second.selected.tolist()
    assert first.costs is not None
    assert second.costs is not None
    assert (second.costs.compute_energy_j > 0).all()
    assert_allclose(first.costs.upload_energy_j, second.costs.upload_energy_j)


@pytest.mark.parametrize("scheme", ["ural", "ural-ives"])
@pytest.mark.parametrize("num_blocks", [1, 4, 12])
def test_ural_is_the_allocation_of_problem_p(tmp_path: Path, scheme: str, num_blocks: int) -> None:
    scheduler = random_scheduler(tmp_path, scheme, num_blocks=num_blocks)
    schedule = play(scheduler, CONTRIBUTION)
    draw, fleet = scheduler.cell.draw(0), scheduler.cell.fleet
    problem = AllocationProblem(
        contribution=np.array(CONTRIBUTION),
        channel_gain=draw.channel_gain,
        interference_w=draw.interference_w,
        max_power_w=fleet.max_power_w,
        workload_cycles=2 * fleet.cycles_per_sample * np.resize([4, 8], 9),
        max_frequency_hz=fleet.max_frequency_hz,
        capacitance=fleet.capacitance,
        model_bits=1,
        bandwidth_hz=1,
        noise_psd_w_per_hz=1,
        energy_weight=1,
        delay_weight=1,
    )
    expected = allocate(problem, {"ural": "optimal", "ural-ives": "ives"}[scheme])
    assert schedule.selected.tolist() == expected.selected.tolist()
    assert schedule.device_columns["block"].tolist() == expected.block_of_device.tolist()
    assert_allclose(schedule.device_columns["transmit_power_w"], expected.transmit_power_w, rtol=1e-12)
    assert_allclose(schedule.device_columns["cpu_frequency_hz"], expected.cpu_frequency_hz, rtol=1e-12)
    costs = schedule.costs
    assert costs is not None
    value = sum(CONTRIBUTION[i] for i in schedule.selected) - costs.energy_j - costs.delay_s
    assert value == pytest.approx(total_cost(problem, expected), rel=1e-12)


def test_the_scale_changes_who_is_worth_an_upload_but_not_the_ranking(tmp_path: Path) -> None:
    raw = play(random_scheduler(tmp_path, "ural"), [-30.0] * 9)
    lifted = play(random_scheduler(tmp_path, "ural", scale=ContributionScale("constant", 130.0)), [-30.0] * 9)
    assert raw.selected.size == 0
    assert lifted.selected.size == 4
    assert lifted.device_columns["scaled_contribution"].tolist() == [100.0] * 9
    for kind in ("raw", "normalised"):
        scheduler = random_scheduler(tmp_path, "nufm-greedy", scale=ContributionScale(kind))
        assert play(scheduler, CONTRIBUTION).selected.tolist() == [2, 3, 5, 8]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("selection", ["nufm", "uniform"])
def test_every_method_goes_with_every_selection(tmp_path: Path, method: str, selection: str) -> None:
    scheduler = random_scheduler(tmp_path, "ural", max_delay_s=50.0, max_energy_j=30.0)
    object.__setattr__(scheduler, "method", method)
    object.__setattr__(scheduler, "selection", selection)
    schedule = play(scheduler, CONTRIBUTION)
    assert 0 < len(schedule.selected) <= 4
    assert set(schedule.selected) <= set(scheduler.computing(0))
    assert all(type(value) in (int, float, str, type(None)) for value in schedule.round_columns.values())
    costs = schedule.costs
    assert costs is not None
    assert costs.upload_time_s.max() <= 50.0
    assert costs.upload_energy_j.max() <= 30.0


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_round_is_a_function_of_seed_and_round_alone_and_leaves_its_input(
    tmp_path: Path, scheme: str
) -> None:
    scheduler = random_scheduler(tmp_path, scheme)
    contribution = np.array(CONTRIBUTION)[scheduler.computing(3)]
    before = contribution.copy()
    reports = Reports(scheduler.computing(3), contribution)
    first = scheduler.schedule(3, reports)
    scheduler.schedule(0, Reports(scheduler.computing(0), contribution))
    again = scheduler.schedule(3, reports)
    for name, column in first.device_columns.items():
        assert np.array_equal(column, again.device_columns[name]), name
    assert first.round_columns == again.round_columns
    assert np.array_equal(contribution, before)
