"""Plans over a cell: powers and frequencies worked out by hand, who is selected, and why nobody is."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from fedwave.allocation import METHODS, AllocationProblem, allocate, total_cost
from fedwave.errors import ProblemError
from fedwave.experiments.schemes import SCHEMES
from fedwave.rng import Stream, generator
from fedwave.selection import POLICIES
from fedwave.server import ContributionScale
from fedwave.server.outcome import UploadLinks
from tests.server.radios import (
    CONTRIBUTION,
    ETA_2,
    GREEDY,
    GREEDY_RADIO,
    OPTIMAL_RADIO,
    SNR_3,
    RadioPlanner,
    all_arrived,
    play,
    radio_planner,
    random_radio,
)
from tests.server.round_costs import COSTS


def random_planner(scheme: str, *, num_blocks: int = 4, **settings: Any) -> RadioPlanner:
    named = SCHEMES[scheme]
    assert named.method is not None
    radio = random_radio(num_blocks=num_blocks)
    return radio_planner(radio, **{"method": named.method, "policy": named.policy, **settings})


# By hand ----------------------------------------------------------------------------------------------------


def test_greedy_on_two_devices_plans_what_a_hand_works_out() -> None:
    planned = radio_planner(GREEDY_RADIO, **GREEDY).play([5.0, 4.0])
    assert planned.plan.selected.tolist() == [0, 1]
    # Eq. (55): nu = (eta_2 / iota)^(1/3) = 1/2 on device 0; 2, cut to nu_max = 1, on device 1.
    assert_allclose(planned.allocation.cpu_frequency_hz, [0.5, 1.0], rtol=1e-12)
    # Eq. (56): device 0 wants an SNR above 3 and is cut to h p_max = 1, rate 1; device 1 takes SNR 3, rate 2.
    assert_allclose(planned.allocation.transmit_power_w, [1 / 3, 3.0], rtol=1e-8)
    energy = 4 * SNR_3 + SNR_3 / 4 + 1 / 3 + 1.5  # iota / 2 * 4 * nu^2; power times 1 s and 0.5 s
    assert planned.allocation.delay_s == pytest.approx(8.0 + 1.0)  # Eq. (31)
    assert planned.allocation.objective == pytest.approx(9.0 - energy - SNR_3 * 9.0)
    assert planned.plan.reason == ""


@pytest.mark.parametrize("gains_per_block", [False, True])
def test_the_optimum_on_two_devices_plans_what_a_hand_works_out(gains_per_block: bool) -> None:
    gain = [[3.0, 3.0], [7.0, 7.0]] if gains_per_block else [3.0, 7.0]
    radio = {**OPTIMAL_RADIO, "channel_gain": gain}
    planned = radio_planner(radio, method="optimal", delay_weight=ETA_2).play([100.0, 90.0])
    assert planned.allocation.block_of_device.tolist() == [0, 1]
    assert_allclose(planned.allocation.cpu_frequency_hz, [0.5, 0.5], rtol=1e-12)
    assert_allclose(planned.allocation.transmit_power_w, [1.0, 6 / 7], rtol=1e-7)
    assert planned.allocation.contribution == 190.0
    energy = 4 * ETA_2 + 0.5 + 3 / 7
    assert planned.allocation.objective == pytest.approx(190.0 - energy - ETA_2 * 8.5)


def test_without_an_energy_weight_everything_runs_as_fast_as_the_slowest_allows() -> None:
    radio = {**OPTIMAL_RADIO, "max_power_w": [1.0, 2.0]}
    allocation = radio_planner(radio, energy_weight=0.0).play([100.0, 90.0]).allocation
    assert allocation.delay_s == pytest.approx(4.0 + 0.5)  # 4 cycles at nu_max = 1; SNR h p / 1 = 3
    assert_allclose(allocation.transmit_power_w, [1.0, 6 / 7])


def test_the_number_of_local_steps_multiplies_the_work() -> None:
    for num_local_steps, time_s in ((1, 4.0), (3, 12.0)):
        planner = radio_planner(GREEDY_RADIO, num_local_steps=num_local_steps, **GREEDY)
        assert planner.play([5.0, 4.0]).allocation.compute_delay_s == pytest.approx(time_s)


# Who is selected --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", ["nufm-greedy", "nufm-random"])
@pytest.mark.parametrize("num_blocks", [1, 4, 9, 12])
def test_nufm_serves_the_largest_contributions_one_for_each_block(scheme: str, num_blocks: int) -> None:
    planned = random_planner(scheme, num_blocks=num_blocks).play(CONTRIBUTION)
    ranked = sorted(range(9), key=lambda i: (-CONTRIBUTION[i], i))
    assert planned.plan.selected.tolist() == sorted(ranked[:num_blocks])
    blocks = planned.allocation.block_of_device[planned.plan.selected]
    assert len(set(blocks.tolist())) == len(blocks) == min(num_blocks, 9)


@pytest.mark.parametrize("scheme", ["ru-greedy", "ru-random"])
@pytest.mark.parametrize("num_blocks", [1, 4, 12])
def test_a_uniform_draw_is_made_before_contributions_are_known(scheme: str, num_blocks: int) -> None:
    planned = random_planner(scheme, num_blocks=num_blocks).play(CONTRIBUTION, 7)
    assert planned.plan.selected.tolist() == planned.asked.tolist()
    assert len(planned.asked) == min(num_blocks, 9)


def test_the_uniform_draw_is_uniform() -> None:
    planner = random_planner("ru-greedy").planner
    state = planner.initial_state()
    num_rounds = 4000
    count = np.zeros(9)
    for round_index in range(num_rounds):
        count[planner.ask(round_index, state)] += 1
    share = 4 / 9
    standard_error = math.sqrt(num_rounds * share * (1 - share))
    assert np.abs(count - num_rounds * share).max() < 4 * standard_error


def test_everyone_computes_when_asked_though_the_uniform_draw_stays_the_same() -> None:
    few, everybody = (
        random_planner("ru-greedy", everyone_computes=asked).play(CONTRIBUTION) for asked in (False, True)
    )
    assert everybody.asked.tolist() == list(range(9))
    assert few.plan.selected.tolist() == everybody.plan.selected.tolist()
    assert_allclose(few.allocation.transmit_power_w, everybody.allocation.transmit_power_w)


@pytest.mark.parametrize("scheme", ["ural", "ural-ives"])
@pytest.mark.parametrize("num_blocks", [1, 4, 12])
def test_ural_is_the_allocation_of_problem_p(scheme: str, num_blocks: int) -> None:
    radio = random_radio(num_blocks=num_blocks)
    # Every constant another number, so that none can stand for another.
    constants = {
        "model_bits": 1.25,
        "bandwidth_hz": 1.5,
        "noise_psd_w_per_hz": 0.75,
        "energy_weight": 0.5,
        "delay_weight": 0.8,
        "max_delay_s": 60.0,
        "max_energy_j": 40.0,
    }
    planned = random_planner(scheme, num_blocks=num_blocks, num_local_steps=3, **constants).play(CONTRIBUTION)
    problem = AllocationProblem(
        contribution=np.array(CONTRIBUTION),
        channel_gain=np.array(radio["channel_gain"]),
        interference_w=np.array(radio["interference_w"]),
        max_power_w=np.array(radio["max_power_w"]),
        workload_cycles=3 * np.array(radio["cycles_per_sample"]) * np.resize([4, 8], 9),
        max_frequency_hz=np.array(radio["max_frequency_hz"]),
        capacitance=np.array(radio["capacitance"]),
        **constants,
    )
    expected = allocate(problem, {"ural": "optimal", "ural-ives": "ives"}[scheme])
    assert planned.plan.selected.tolist() == expected.selected.tolist()
    assert planned.allocation.block_of_device.tolist() == expected.block_of_device.tolist()
    assert_allclose(planned.allocation.transmit_power_w, expected.transmit_power_w, rtol=1e-12)
    assert_allclose(planned.allocation.cpu_frequency_hz, expected.cpu_frequency_hz, rtol=1e-12)
    assert planned.allocation.objective == pytest.approx(total_cost(problem, planned.allocation), rel=1e-12)


def test_who_does_not_compute_has_no_work_and_no_contribution() -> None:
    planned = random_planner("ural", policy="round-robin", num_selected=3).play(CONTRIBUTION)
    scaled = planned.plan.scaled_contribution
    assert scaled is not None
    assert scaled.tolist() == [*CONTRIBUTION[:3], *[0.0] * 6]
    assert set(planned.plan.selected) <= {0, 1, 2}
    radio = random_radio()
    work = 2 * np.array(radio["cycles_per_sample"]) * np.resize([4, 8], 9)
    slowest = max(work[i] / planned.allocation.cpu_frequency_hz[i] for i in range(3))
    assert planned.allocation.compute_delay_s == pytest.approx(slowest)  # of those three alone


def test_the_scale_changes_who_is_worth_an_upload_but_not_the_ranking() -> None:
    lifting = ContributionScale("constant", 130.0)
    raw = random_planner("ural").play([-30.0] * 9).plan
    lifted = random_planner("ural", scale=lifting).play([-30.0] * 9).plan
    assert raw.selected.size == 0
    assert lifted.selected.size == 4
    assert lifted.scaled_contribution is not None
    assert lifted.scaled_contribution.tolist() == [100.0] * 9
    for kind in ("raw", "normalised"):
        planner = random_planner("nufm-greedy", scale=ContributionScale(kind))
        assert planner.play(CONTRIBUTION).plan.selected.tolist() == [2, 3, 5, 8]


def test_a_scale_is_that_of_the_reporting_devices_alone() -> None:
    # Of devices 0, 1 and 2 the mean size is 38; the 80 of device 5 is not there to count.
    scale = ContributionScale("normalised")
    plan = random_planner("ural", policy="round-robin", num_selected=3, scale=scale).play(CONTRIBUTION).plan
    assert plan.scaled_contribution is not None
    assert_allclose(plan.scaled_contribution, [30 / 38, -4 / 38, 80 / 38, *[0.0] * 6])


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("policy", POLICIES)
def test_every_method_goes_with_every_policy_within_the_limits(method: str, policy: str) -> None:
    limits = {"max_delay_s": 50.0, "max_energy_j": 30.0}
    planned = radio_planner(random_radio(), method=method, policy=policy, **limits).play(CONTRIBUTION)
    selected = planned.plan.selected
    assert 0 < len(selected) <= 4
    assert set(selected) <= set(planned.asked)
    assert planned.allocation.upload_delay_s <= 50.0
    radio = random_radio()
    block, power = planned.allocation.block_of_device[selected], planned.allocation.transmit_power_w[selected]
    noise = np.array(radio["interference_w"])[block] + 1.0
    rate = np.log2(1.0 + power * np.array(radio["channel_gain"])[selected, block] / noise)
    assert (power / rate).max() <= 30.0 * (1 + 1e-9)
    assert (power <= np.array(radio["max_power_w"])[selected]).all()


def test_a_policy_with_fewer_uploads_than_blocks_has_its_way() -> None:
    planner = radio_planner(random_radio(), method="optimal", num_selected=2)
    assert planner.play(CONTRIBUTION).plan.selected.tolist() == [2, 5]


def test_the_options_of_a_method_reach_it() -> None:
    # A start and one iteration of IVES: a fixed point is not reached, and the status says so.
    options = {"max_iterations": 1}
    planned = radio_planner(random_radio(), method="ives", method_options=options).play(CONTRIBUTION)
    assert planned.allocation.iterations == 1
    with pytest.raises(ProblemError, match="has no option 'max_iterations'"):
        radio_planner(random_radio(), method="greedy", method_options=options).play(CONTRIBUTION)


# What the plan says -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("policy", POLICIES)
def test_the_server_waits_for_reports_just_if_they_can_change_the_plan(method: str, policy: str) -> None:
    planner = radio_planner(random_radio(num_devices=4), method=method, policy=policy, num_selected=2)
    plans = [planner.play(worth).allocation for worth in ([50.0, 40.0, 30, 20], [2.0, 3.0, 400, 500])]
    differ = not np.array_equal(plans[0].block_of_device, plans[1].block_of_device)
    waits = planner.play([1.0] * 4).plan.needs_reports
    assert waits is (POLICIES[policy](num_selected=2).needs_reports or method in CHOOSING)
    assert waits or not differ


CHOOSING = set(METHODS) - {"greedy", "random", "fedl-power", "equal-split"}


def test_uploads_that_are_not_worth_it_leave_the_model_and_say_so() -> None:
    plan = radio_planner(GREEDY_RADIO, method="optimal", energy_weight=1e6).play([5.0, 4.0]).plan
    assert plan.selected.size == 0
    expected = "nobody uploads, the model stays as it is: no upload is worth its energy and delay"
    assert plan.reason == expected


def test_contributions_that_are_all_negative_leave_the_model_and_say_so() -> None:
    plan = radio_planner(GREEDY_RADIO, method="optimal").play([-5.0, 0.0]).plan
    assert plan.selected.size == 0
    assert plan.reason.startswith("nobody uploads, the model stays as it is: ")
    assert "no device that may upload has a contribution > 0" in plan.reason


def test_a_limit_that_nobody_can_meet_is_explained() -> None:
    reason = radio_planner(GREEDY_RADIO, max_delay_s=0.01).play([5.0, 4.0]).plan.reason
    assert "nobody uploads" in reason
    assert "cannot finish by 0.01 s even at full power" in reason


def test_a_limit_that_somebody_cannot_meet_is_the_reason_of_a_plan_with_uploads() -> None:
    plan = radio_planner(GREEDY_RADIO, **GREEDY, max_delay_s=0.9).play([5.0, 4.0]).plan
    assert plan.selected.tolist() == [1]  # device 0 needs 1 s at full power
    assert plan.reason.startswith("device 0 cannot finish by 0.9 s")


def test_planning_over_a_cell_needs_its_channel() -> None:
    with pytest.raises(ProblemError, match="planning over a cell needs the round's channel, got None"):
        play(radio_planner(GREEDY_RADIO).planner, [5.0, 4.0], channel=None)


@pytest.mark.parametrize(("num_blocks", "kept"), [(1, 256), (64, 256), (65, 260), (100, 400)])
def test_four_models_are_kept_for_each_block_and_at_least_256(num_blocks: int, kept: int) -> None:
    planner = random_planner("ural", num_blocks=num_blocks).planner
    assert planner.max_models == kept


# The luck of a round ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", ["nufm-greedy", "nufm-random"])
def test_blocks_and_powers_are_drawn_by_the_seed_and_the_round(scheme: str) -> None:
    method = SCHEMES[scheme].method
    assert method is not None
    radio = random_radio()
    problem = AllocationProblem(
        contribution=np.array(CONTRIBUTION),
        channel_gain=np.array(radio["channel_gain"]),
        interference_w=np.array(radio["interference_w"]),
        max_power_w=np.array(radio["max_power_w"]),
        workload_cycles=2 * np.array(radio["cycles_per_sample"]) * np.resize([4, 8], 9),
        max_frequency_hz=np.array(radio["max_frequency_hz"]),
        capacitance=np.array(radio["capacitance"]),
        model_bits=1,
        bandwidth_hz=1,
        noise_psd_w_per_hz=1,
        energy_weight=1,
        delay_weight=1,
    )
    seen = set()
    for seed, round_index in ((0, 0), (0, 1), (0, 2), (1, 0), (1, 1)):
        allocation = random_planner(scheme, seed=seed).play(CONTRIBUTION, round_index).allocation
        luck = generator(seed, Stream.ALLOCATION, round_index)
        expected = allocate(problem, method, rng=luck, selected=[2, 3, 5, 8])
        assert allocation.block_of_device.tolist() == expected.block_of_device.tolist()
        assert allocation.transmit_power_w.tolist() == expected.transmit_power_w.tolist()
        seen.add(tuple(allocation.block_of_device.tolist()))
    assert len(seen) > 1


@pytest.mark.parametrize("policy", ["uniform", "power-of-choice"])
def test_who_is_drawn_depends_on_the_seed_and_the_round(policy: str) -> None:
    def drawn(seed: int, round_index: int) -> tuple[int, ...]:
        planner = radio_planner(random_radio(num_devices=30), policy=policy, seed=seed).planner
        return tuple(planner.ask(round_index, planner.initial_state()).tolist())

    assert drawn(0, 0) == drawn(0, 0)
    assert len({drawn(seed, round_index) for seed in range(3) for round_index in range(3)}) == 9


# Methods that look back -------------------------------------------------------------------------------------


def test_proportional_fair_hears_who_had_what_and_serves_everybody_in_turn() -> None:
    radio = {**random_radio(num_devices=6, num_blocks=2), "channel_gain": [1.0, 0.9, 0.8, 0.7, 0.6, 0.5]}
    radio |= {"interference_w": [0.0, 0.1], "max_power_w": [1.0] * 6}
    planner = radio_planner(radio, method="proportional-fair")
    state = planner.planner.initial_state()
    assert state["mean_rate_bps"].tolist() == [0.0] * 6
    served = []
    for k in range(3):
        planned = play(planner.planner, [1.0] * 6, k, planner.channel, state)
        chosen, rates = planned.plan.selected, np.full(6, np.nan)
        rates[chosen] = 2.0
        nothing = np.full(6, np.nan)
        links = UploadLinks(
            num_samples=np.ones(6, dtype=np.int64),
            channel_gain=nothing,
            interference_w=nothing,
            sinr=nothing,
            rate_bps=rates,
        )
        arrived = replace(all_arrived(planned.plan), costs=replace(COSTS, links=links))
        state = planner.planner.after(k, planned.reports, planned.plan, arrived, state)
        served.append(chosen.tolist())
    assert served == [[0, 1], [2, 3], [4, 5]]
    assert_allclose(state["mean_rate_bps"], [0.162, 0.162, 0.18, 0.18, 0.2, 0.2])


@pytest.mark.parametrize("method", sorted(set(METHODS) - {"proportional-fair"}))
def test_others_remember_no_rates(method: str) -> None:
    planner = radio_planner(random_radio(), method=method)
    assert "mean_rate_bps" not in planner.planner.initial_state()
    assert "mean_rate_bps" not in planner.play(CONTRIBUTION).state
