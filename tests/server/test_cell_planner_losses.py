"""A server plans over a cell with losses: what methods that plan make of them, and the others do not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fedwave.allocation import METHODS, Status, account
from fedwave.server import CellPlanner, RadioTerms, Reports, RoundAims, Work, round_problem
from fedwave.wireless.fleet import Fleet
from fedwave.wireless.phases import report_phase
from fedwave.wireless.rate import RadioPower, RateModel
from fedwave.wireless.terms import ChannelDraw
from tests.server.radios import cell_planner

NUM_DEVICES, NUM_BLOCKS = 24, 6
PLANNING = ["optimal", "ives", "chen2020"]
SERVING = ["greedy", "random", "fedl-power"]
RNG = np.random.default_rng(5)
CHANNEL = ChannelDraw(RNG.exponential(size=(NUM_DEVICES, NUM_BLOCKS)) + 0.2, RNG.uniform(0, 0.5, NUM_BLOCKS))
FLEET = Fleet(
    max_power_w=RNG.uniform(5, 20, NUM_DEVICES),
    max_frequency_hz=RNG.uniform(2, 4, NUM_DEVICES),
    capacitance=RNG.uniform(0.5, 1, NUM_DEVICES),
    cycles_per_sample=RNG.uniform(0.01, 0.1, NUM_DEVICES),
)
REPORTS = Reports(
    device_index=np.arange(NUM_DEVICES),
    contribution=RNG.uniform(20, 60, NUM_DEVICES),
    loss=np.ones(NUM_DEVICES),
    num_samples=np.full(NUM_DEVICES, 10),
    gradient_norms=np.ones((NUM_DEVICES, 1)),
)

TERMS = RadioTerms(num_blocks=NUM_BLOCKS, bandwidth_hz=1.0, noise_psd_w_per_hz=1.0)
WORK = Work(model_bits=1.0, num_local_steps=1, num_samples=REPORTS.num_samples)


def planner(method="optimal", **changes) -> CellPlanner:
    num_selected = NUM_BLOCKS if METHODS[method].serves_given_devices else NUM_DEVICES
    made = cell_planner(
        FLEET, NUM_BLOCKS, method=method, num_selected=num_selected, everyone_computes=True, **changes
    )
    return replace(made, runner=replace(made.runner, num_samples=REPORTS.num_samples), work=WORK)


def planned(method="optimal", **changes):
    chosen = planner(method, **changes)
    return chosen.plan(0, REPORTS.device_index, REPORTS, CHANNEL, chosen.initial_state())


def problem_of(**link):
    """Return problem (P) as a planner without losses sees it."""
    return round_problem(
        contribution=REPORTS.contribution,
        channel=CHANNEL,
        fleet=FLEET,
        terms=TERMS,
        aims=RoundAims(energy_weight=1.0, delay_weight=1.0),
        work=WORK,
        **link,
    )


def snr_of(plan):
    chosen, found = plan.selected, plan.allocation
    return problem_of().snr_of(chosen, found.block_of_device[chosen], found.transmit_power_w[chosen])


def decisions(plan):
    found = plan.allocation
    return (found.block_of_device.tolist(), found.transmit_power_w.tolist(), found.cpu_frequency_hz.tolist())


@pytest.mark.parametrize("method", PLANNING)
@pytest.mark.parametrize("report_bits", [0.0, 0.02])
def test_methods_that_plan_end_before_the_deadline(method, report_bits):
    free = planned(method).allocation
    reports_s = report_phase(
        replace(TERMS, report_bits=report_bits),
        FLEET.max_power_w,
        CHANNEL,
        device_index=REPORTS.device_index,
    ).duration_s
    fastest_s = problem_of().fastest_compute_s
    deadline_s = reports_s + fastest_s + 0.6 * (free.delay_s - fastest_s)
    plan = planned(method, deadline_s=deadline_s, report_bits=report_bits)
    assert len(plan.selected) > 0
    entry = account(problem_of(), plan.allocation)
    end_s = entry.compute_delay_s.max() + reports_s + entry.upload_delay_s[plan.selected]
    assert (end_s <= deadline_s).all()  # to the last bit: the world knows no tolerance
    if method == "optimal":
        assert end_s.max() == pytest.approx(deadline_s, rel=1e-6)
        assert plan.allocation.compute_delay_s < free.compute_delay_s  # both give way
        assert plan.allocation.upload_delay_s < free.upload_delay_s


def test_the_joint_optimum_beats_a_deadline_left_to_the_uploads():
    free = planned().allocation
    deadline_s = 0.75 * free.delay_s
    joint = planned(deadline_s=deadline_s).allocation
    left_s = deadline_s - free.compute_delay_s
    alone = planned(max_delay_s=left_s).allocation
    assert joint.status is Status.OPTIMAL
    assert joint.objective > alone.objective + 0.5


@pytest.mark.parametrize("method", PLANNING)
def test_methods_that_plan_stay_above_the_outage_with_its_margin(method):
    weakest = snr_of(planned(method)).min()
    outage = 1.3 * weakest
    plan = planned(method, outage_snr=outage)
    assert len(plan.selected) > 0
    assert (snr_of(plan) >= outage).all()
    careful = planned(method, outage_snr=outage, outage_margin=1.5)
    assert (snr_of(careful) >= 1.5 * outage).all()
    if method == "optimal":
        assert careful.allocation.objective <= plan.allocation.objective


@pytest.mark.parametrize("method", SERVING)
def test_the_others_decide_as_before_and_say_nothing_of_it(method):
    free = planned(method)
    entry = account(problem_of(), free.allocation)
    end_s = entry.compute_delay_s.max() + entry.upload_delay_s[free.selected]
    for losses in (
        {"deadline_s": float(np.median(end_s))},
        {"outage_snr": float(np.median(snr_of(free)))},
        {"packet_error_waterfall": 0.2},
    ):
        plan = planned(method, **losses)
        assert decisions(plan) == decisions(free)
        assert plan.allocation.contribution < free.allocation.contribution
        assert plan.reason == free.reason == ""


def test_packet_errors_are_planned_for():
    calm, risky = planned(), planned(packet_error_waterfall=0.5)
    assert snr_of(risky).min() > snr_of(calm).min()
    exact = problem_of(packet_error_waterfall=0.5)
    believed = replace(calm.allocation)
    arrives = account(exact, believed).success_probability
    assert risky.allocation.contribution > float((REPORTS.contribution * arrives).sum())


def test_modem_drain_and_floors_reach_the_problem():
    rate, radio = RateModel(efficiency=0.5), RadioPower(amplifier_efficiency=0.5, circuit_power_w=0.1)
    lifted = replace(FLEET, min_frequency_hz=np.full(NUM_DEVICES, 0.4))
    with_floor = replace(planner(rate=rate, radio=radio), fleet=lifted)
    plan = with_floor.plan(0, REPORTS.device_index, REPORTS, CHANNEL, with_floor.initial_state())
    entry = account(problem_of(rate=rate, radio=radio), plan.allocation)
    assert float(entry.upload_energy_j.sum()) == pytest.approx(
        plan.allocation.energy_j - float(entry.compute_energy_j.sum())
    )
    assert plan.allocation.cpu_frequency_hz.min() >= 0.4
    assert planned().allocation.cpu_frequency_hz.min() < 0.4


def test_a_deadline_that_cannot_be_met_leaves_the_model_as_it_is():
    plan = planned(deadline_s=0.5 * problem_of().fastest_compute_s)
    assert len(plan.selected) == 0
    assert plan.reason.startswith("nobody uploads, the model stays as it is: device ")
    assert "misses max_round_delay_s by 100 %" in plan.reason


def test_defaults_plan_as_a_server_that_knows_of_no_losses():
    plan = planned(rate=RateModel(), radio=RadioPower(), outage_margin=1.0)
    assert decisions(plan) == decisions(planned())
