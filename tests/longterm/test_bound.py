"""The bound over a run: it holds for the offline optimum by enumeration, and for our policies."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from fedwave import load_cell
from fedwave.allocation import allocate
from fedwave.longterm.bound import dual_value, long_term_bound, relaxed_rounds
from fedwave.longterm.trace import Trace, replay, trace_of_cell
from fedwave.server import DriftPlusPenalty
from fedwave.wireless.delivery import UploadRisks
from tests.longterm.small_traces import small_trace


def options(trace: Trace, round_index: int, num_delays: int) -> tuple[np.ndarray, np.ndarray]:
    """Utility and joules of many plans of a round of one block, with all that the world counts written out.

    Whoever uploads is the only one asked; it computes at one of some frequencies and sends at some delay.
    """
    world, aims = trace.world, trace.planner.aims
    channel, fleet = world.channel(round_index), world.fleet
    noise_w = channel.interference_w[0] + world.terms.noise_w
    utility, energy_j = [0.0], [np.zeros(trace.num_devices)]
    for device in range(trace.num_devices):
        cycles = fleet.cycles_per_sample[device] * trace.planner.work.num_samples[device]
        least_s = 1.0 / np.log2(1.0 + fleet.max_power_w[device] * channel.channel_gain[device] / noise_w)
        for frequency in fleet.max_frequency_hz[device] * np.array([0.5, 1.0]):
            for delay_s in least_s * np.geomspace(1.0, 30.0, num_delays):
                power_w = (2.0 ** (1.0 / delay_s) - 1.0) * noise_w / channel.channel_gain[device]
                spent = np.zeros(trace.num_devices)
                spent[device] = power_w * delay_s + 0.5 * fleet.capacitance[device] * cycles * frequency**2
                delay = delay_s + cycles / frequency
                utility.append(trace.contribution[round_index, device] - aims.delay_weight * delay)
                energy_j.append(spent)
    return np.array(utility), np.array(energy_j)


# Three rounds hold few whole uploads, of which the bound takes parts: the gap is one of integers.
@pytest.mark.parametrize(("seed", "least_share"), [(1, 0.3), (2, 0.5)])
def test_no_offline_schedule_of_a_tiny_trace_beats_the_bound(seed: int, least_share: float) -> None:
    trace, budget_j = small_trace(2, 1, 3, seed=seed, num_samples=1), 0.5
    found = [options(trace, k, 4) for k in range(3)]
    best = 0.0
    for chosen in itertools.product(*(range(len(utility)) for utility, _ in found)):
        spent = sum(found[k][1][one] for k, one in enumerate(chosen))
        if (spent <= 3 * budget_j).all():
            best = max(best, sum(found[k][0][one] for k, one in enumerate(chosen)) / 3)
    bound = long_term_bound(trace, budget_j, num_steps=20)
    assert least_share * bound.value <= best <= bound.value
    # Any prices give a bound, also those that nobody has looked for.
    rounds, rng = relaxed_rounds(trace), np.random.default_rng(seed)
    for prices in rng.uniform(0.0, 10.0, (5, 2)):
        assert dual_value(trace, rounds, prices, np.full(2, budget_j))[0] >= best


def test_without_scarcity_the_bound_is_the_sum_of_the_rounds_optima() -> None:
    trace = small_trace(4, 2, 3, num_samples=0)  # nothing to compute: nothing is relaxed
    bound = long_term_bound(trace, 1e6, num_steps=2)
    optima = [allocate(one.problem).objective for one in relaxed_rounds(trace)]
    assert bound.value == pytest.approx(np.mean(optima), rel=1e-6)
    assert not bound.prices.any()
    assert replay(trace).mean_utility == pytest.approx(bound.value, rel=1e-6)


def test_the_dual_is_convex_and_its_subgradient_is_the_joules_that_are_left() -> None:
    trace, budget = small_trace(3, 2, 3, seed=1), np.full(3, 0.2)
    rounds, rng = relaxed_rounds(trace), np.random.default_rng(0)
    for _ in range(6):
        one, two = rng.uniform(0.0, 20.0, (2, 3))
        at_one, joules = dual_value(trace, rounds, one, budget)
        at_two, _ = dual_value(trace, rounds, two, budget)
        assert at_two >= at_one + (budget - joules) @ (two - one) - 1e-5 * abs(at_one)
        middle, _ = dual_value(trace, rounds, 0.5 * (one + two), budget)
        assert middle <= 0.5 * (at_one + at_two) + 1e-5 * abs(middle)


def test_a_larger_v_buys_utility_with_overdraft_and_what_is_overdrawn_is_the_queue() -> None:
    trace, budget_j = small_trace(6, 2, 20, seed=2), 0.25
    free = replay(trace)
    assert free.worst_energy_j > 1.5 * budget_j  # the budget is worth a policy
    utilities, overdraws = [], []
    for v in (0.05, 2.0):
        found = replay(trace, lambda planner, v=v: DriftPlusPenalty(planner, budget_j=budget_j, v=v))
        queue = np.zeros(6)
        for spent in found.energy_j:
            queue = np.maximum(queue + spent - budget_j, 0.0)
        assert (found.energy_j.sum(axis=0) <= 20 * budget_j + queue + 1e-9).all()
        utilities.append(found.mean_utility)
        overdraws.append(found.worst_energy_j - budget_j)
    assert utilities[0] < utilities[1] <= free.mean_utility
    assert overdraws[0] < overdraws[1]


def test_a_policy_that_keeps_its_budget_stays_below_the_bound() -> None:
    trace, budget_j = small_trace(4, 2, 8, seed=2), 0.4
    bound = long_term_bound(trace, budget_j, num_steps=8)
    kept = 0
    for planned_j in (0.1, 0.2, 0.3):
        found = replay(trace, lambda planner, own=planned_j: DriftPlusPenalty(planner, budget_j=own, v=0.3))
        if found.worst_energy_j <= budget_j:
            kept += 1
            assert found.mean_utility <= bound.value
    assert kept


def test_the_overdraft_of_a_round_falls_with_the_rounds() -> None:
    """The queue is bounded by V and not by the rounds."""
    over = []
    for num_rounds in (10, 60):
        trace = small_trace(4, 2, num_rounds, seed=5)
        found = replay(trace, lambda planner: DriftPlusPenalty(planner, budget_j=0.2, v=0.3))
        over.append(max(found.worst_energy_j - 0.2, 0.0))
    assert over[1] < 0.5 * over[0]


def street_trace(num_rounds: int = 3, cpu: str = "phone") -> Trace:
    settings = {"num_blocks": 2, "fleet": {"cpu": cpu}}
    cell = load_cell("umi-3.5ghz", num_devices=5, seed=1, overrides=settings)
    contribution = np.random.default_rng(1).exponential(2.0, (num_rounds, 5))
    return trace_of_cell(
        cell, contribution, energy_weight=0.01, delay_weight=0.1, model_bits=1e6, num_samples=20, seed=1
    )


@pytest.mark.parametrize("cpu", ["phone", "microcontroller"])
def test_before_it_sends_a_device_spends_at_least_what_listening_alone_and_frugal_computing_take(
    cpu: str,
) -> None:
    trace = street_trace(cpu=cpu)
    fleet, downlink = trace.world.fleet, trace.world.terms.downlink
    assert downlink is not None
    assert (fleet.static_power_w.min() > 0.0) == (cpu == "phone")
    assert (fleet.joules_per_cycle.min() > 0.0) == (cpu == "microcontroller")
    played = replay(trace)
    for k, one in enumerate(relaxed_rounds(trace)):
        channel = trace.world.channel(k)
        gain = channel.channel_gain if channel.channel_gain.ndim == 1 else channel.channel_gain.mean(axis=1)
        for i in range(5):
            snr = downlink.power_w * gain[i] / downlink.noise_w
            bits_per_hz = float(downlink.rate.spectral_efficiency(np.array([snr]))[0])
            listening_j = downlink.receive_power_w * 1e6 / (downlink.bandwidth_hz * bits_per_hz)
            cycles = 20 * fleet.cycles_per_sample[i]
            pace_hz = np.geomspace(max(fleet.min_frequency_hz[i], 1e6), fleet.max_frequency_hz[i], 20_000)
            watts = 0.5 * fleet.capacitance[i] * pace_hz**3 + fleet.static_power_w[i]
            computing_j = (cycles * (watts / pace_hz + fleet.joules_per_cycle[i])).min()
            assert one.least_j[i] == pytest.approx(listening_j + computing_j, rel=1e-6)
        assert (played.energy_j[k] >= one.least_j * (1 - 1e-9)).all()


def test_the_relaxed_round_grants_the_solvers_tolerance_twice_and_costs_no_time_before_the_uploads() -> None:
    trace = street_trace(1)
    risks = UploadRisks(deadline_s=8.0, outage_snr=0.5)
    aims = replace(trace.planner.aims, max_energy_j=3.0, max_delay_s=5.0)
    limited = Trace(
        world=replace(trace.world, terms=replace(trace.world.terms, risks=risks)),
        planner=replace(trace.planner, aims=aims),
        contribution=trace.contribution,
    )
    (one,) = relaxed_rounds(limited)
    problem = one.problem
    assert problem.max_delay_s == 5.0 * (1 + 2e-9)
    assert problem.max_round_delay_s == 8.0 * (1 + 2e-9)
    np.testing.assert_array_equal(np.asarray(problem.max_energy_j), np.full(5, 3.0 * (1 + 2e-9)))
    assert problem.min_snr == 0.5 * (1 - 2e-9)
    assert (problem.fixed_delay_s, problem.fastest_compute_s) == (0.0, 0.0)
    assert not problem.workload_cycles.any()
    (free,) = relaxed_rounds(trace)
    assert (free.problem.max_delay_s, free.problem.max_round_delay_s) == (None, None)


def test_joules_before_the_upload_are_paid_at_the_price_and_counted() -> None:
    """g of one round: its optimum with what comes before the upload taken off u, plus the budget's worth."""
    trace = street_trace(1)
    rounds, rng = relaxed_rounds(trace), np.random.default_rng(0)
    for prices in rng.uniform(0.0, 3.0, (4, 5)):
        value, energy_j = dual_value(trace, rounds, prices, np.full(5, 0.2))
        eta = 0.01 + prices
        worth = rounds[0].problem.contribution - eta * rounds[0].least_j
        best = allocate(replace(rounds[0].problem, contribution=worth, energy_weight=eta))
        assert best.account is not None
        assert value == pytest.approx(best.upper_bound + 0.2 * prices.sum(), rel=1e-9)
        before_j = np.where(best.account.is_selected, rounds[0].least_j, 0.0)
        np.testing.assert_allclose(energy_j, best.account.upload_energy_j + before_j, rtol=1e-9)
