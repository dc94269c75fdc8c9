"""What a plan is worth where the gains are others: by hand, by the definitions, against bounds."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fedwave import evaluate
from fedwave.allocation import METHODS, Allocation, AllocationProblem, allocate, total_cost, violations
from fedwave.errors import ProblemError
from fedwave.wireless.rate import RadioPower, RateModel
from tests.allocation.allocation_problems import paper_problem, random_problem, small_problem


def by_hand(**changes: Any) -> tuple[Allocation, AllocationProblem]:
    """Device 0 on block 1 (noise 2 W) at 2 W, device 2 on block 0 (noise 1 W) at 1 W: SNR 1 at gain 1.

    One second each at 1 bit/s, 2 J and 1 J. Computing takes 1, 4 and 1 s, and 0.515625 J together.
    """
    problem = small_problem(channel_gain=1.0, max_power_w=2.0, **changes)
    plan = replace(
        allocate(problem),
        block_of_device=np.array([1, -1, 0]),
        transmit_power_w=np.array([2.0, 0.0, 1.0]),
        cpu_frequency_hz=np.array([1.0, 0.5, 0.5]),
    )
    return plan, problem


CPU_J, CPU_S = 0.515625, 4.0


def test_a_weaker_channel_takes_longer_and_costs_more() -> None:
    plan, problem = by_hand()
    # Device 0 meets a gain of sqrt(2) - 1: log2(1 + SNR) = 1/2, so 2 s and 4 J; device 2 an SNR of 3: 0.5 s.
    met = evaluate(plan, replace(problem, channel_gain=np.array([math.sqrt(2.0) - 1.0, 1.0, 3.0])))
    assert met.account.upload_delay_s == pytest.approx([2.0, 0.0, 0.5])
    assert met.account.upload_energy_j == pytest.approx([4.0, 0.0, 0.5])
    assert met.account.rate_bps[[0, 2]] == pytest.approx([0.5, 2.0])
    assert (met.contribution, met.lost.tolist(), met.violations) == (9.0, [], ())
    assert met.energy_j == pytest.approx(CPU_J + 4.5)
    assert (met.compute_delay_s, met.upload_delay_s) == (CPU_S, pytest.approx(2.0))
    assert met.delay_s == pytest.approx(CPU_S + 2.0)
    assert met.objective == pytest.approx(9.0 - 0.25 * (CPU_J + 4.5) - 0.5 * (CPU_S + 2.0))


def test_below_the_modems_floor_nothing_is_sent_and_the_upload_is_lost() -> None:
    plan, problem = by_hand(rate=RateModel(min_snr=0.5))
    met = evaluate(plan, replace(problem, channel_gain=np.array([0.49, 1.0, 1.0])))
    assert met.lost.tolist() == [0]
    assert met.account.upload_delay_s.tolist() == [0.0, 0.0, 1.0]
    assert met.account.upload_energy_j.tolist() == [0.0, 0.0, 1.0]
    assert met.objective == pytest.approx(4.0 - 0.25 * (CPU_J + 1.0) - 0.5 * (CPU_S + 1.0))
    assert any("never finishes" in line for line in met.violations)
    at_the_floor = evaluate(plan, replace(problem, channel_gain=np.array([0.5, 1.0, 1.0])))
    assert at_the_floor.lost.size == 0


def test_below_the_threshold_it_is_sent_in_vain() -> None:
    plan, problem = by_hand(min_snr=0.5)
    met = evaluate(plan, replace(problem, channel_gain=np.array([math.sqrt(2.0) - 1.0, 1.0, 1.0])))
    assert met.lost.tolist() == [0]
    assert met.account.upload_delay_s == pytest.approx([2.0, 0.0, 1.0])
    assert met.objective == pytest.approx(4.0 - 0.25 * (CPU_J + 5.0) - 0.5 * (CPU_S + 2.0))
    (line,) = met.violations
    assert line.startswith("device 0 sends at an SNR of 0.414214, below 0.5 (min_snr)")


@pytest.mark.parametrize(
    ("limit", "ended_s"),
    [
        ({"max_delay_s": 1.5}, 1.5),
        ({"max_energy_j": [3.0, 9.0, 9.0]}, 1.5),  # at 2 W
        (
            {"max_round_delay_s": 6.0, "fixed_delay_s": 0.5},
            1.5,
        ),  # after 4 s of computing and 0.5 s of reports
        ({"max_delay_s": 1.5, "max_energy_j": [2.5, 9.0, 9.0]}, 1.25),
        ({"max_delay_s": 1.125, "max_energy_j": [2.5, 9.0, 9.0]}, 1.125),
    ],
)
def test_at_a_hard_limit_an_upload_is_broken_off(limit: dict[str, Any], ended_s: float) -> None:
    plan, problem = by_hand(**limit)
    met = evaluate(plan, replace(problem, channel_gain=np.array([math.sqrt(2.0) - 1.0, 1.0, 1.0])))
    assert met.lost.tolist() == [0]
    assert met.account.upload_delay_s == pytest.approx([ended_s, 0.0, 1.0])
    assert met.account.upload_energy_j == pytest.approx([2.0 * ended_s, 0.0, 1.0])
    assert met.objective == pytest.approx(
        4.0 - 0.25 * (CPU_J + 2.0 * ended_s + 1.0) - 0.5 * (CPU_S + ended_s)
    )
    assert len(met.violations) == len(limit) - ("fixed_delay_s" in limit)


def test_a_real_radio_is_broken_off_with_its_last_joule_and_drains_its_circuit() -> None:
    radio = RadioPower(amplifier_efficiency=0.5, circuit_power_w=1.0)  # device 0 drains 5 W, device 2 3 W
    plan, problem = by_hand(radio=radio, max_energy_j=[7.5, 9.0, 9.0])
    met = evaluate(plan, replace(problem, channel_gain=np.array([math.sqrt(2.0) - 1.0, 1.0, 1.0])))
    assert met.account.upload_delay_s == pytest.approx([1.5, 0.0, 1.0])
    assert met.account.upload_energy_j == pytest.approx([7.5, 0.0, 3.0])


def test_when_computing_ends_after_the_round_every_upload_is_lost_at_once() -> None:
    plan, problem = by_hand(max_round_delay_s=3.0)
    met = evaluate(plan, problem)
    assert met.lost.tolist() == [0, 2]
    assert met.account.upload_energy_j.tolist() == [0.0, 0.0, 0.0]
    assert met.objective == pytest.approx(-0.25 * CPU_J - 0.5 * CPU_S)  # computing counts in full, as in (P)


def test_packet_errors_count_at_the_true_snr() -> None:
    plan, problem = by_hand(packet_error_waterfall=0.25)
    met = evaluate(plan, replace(problem, channel_gain=np.array([0.5, 1.0, 3.0])))
    assert met.contribution == pytest.approx(5.0 * math.exp(-0.25 / 0.5) + 4.0 * math.exp(-0.25 / 3.0))
    assert met.lost.size == 0


def test_without_a_signal_a_limit_ends_it_and_nothing_else_does() -> None:
    plan, problem = by_hand()
    dead = replace(problem, channel_gain=np.array([0.0, 1.0, 1.0]))
    met = evaluate(plan, dead)
    assert (met.objective, met.upload_delay_s) == (-math.inf, math.inf)
    met = evaluate(plan, replace(dead, max_delay_s=3.0))
    assert met.lost.tolist() == [0]
    assert met.objective == pytest.approx(4.0 - 0.25 * (CPU_J + 6.0 + 1.0) - 0.5 * (CPU_S + 3.0))


@pytest.mark.parametrize("method", METHODS)
def test_in_its_own_problem_a_plan_is_worth_what_it_promises(method: str) -> None:
    for seed in range(8):
        problem = paper_problem(seed, num_devices=12, num_blocks=4)
        plan = allocate(problem, method, rng=np.random.default_rng(seed))
        met = evaluate(plan, problem)
        assert met.objective == total_cost(problem, plan)
        assert met.contribution == pytest.approx(plan.contribution, rel=1e-12)
        assert met.objective == pytest.approx(plan.objective, rel=1e-12)
        assert met.violations == () == violations(problem, plan)


def worth_by_definition(plan: Allocation, problem: AllocationProblem) -> float:
    """Return the worth of a plan from the text of ``evaluate``, one device after the other."""
    cycles, frequency = problem.workload_cycles, plan.cpu_frequency_hz
    computing_s = max((c / f for c, f in zip(cycles, frequency, strict=True) if c > 0), default=0.0)
    price = np.broadcast_to(problem.energy_weight, cycles.shape)  # one for all, or one a device
    paid = 0.0
    for i in np.flatnonzero(cycles > 0):
        watts = 0.5 * problem.capacitance[i] * frequency[i] ** 3 + np.asarray(problem.static_power_w)[i]
        joules = watts * cycles[i] / frequency[i] + np.asarray(problem.joules_per_cycle)[i] * cycles[i]
        paid += price[i] * joules
    gained, longest_s = 0.0, 0.0
    for i in plan.selected:
        m, watts = int(plan.block_of_device[i]), float(plan.transmit_power_w[i])
        gain = problem.channel_gain[i, m] if problem.channel_gain.ndim == 2 else problem.channel_gain[i]
        snr = watts * gain / (problem.interference_w[m] + problem.bandwidth_hz * problem.noise_psd_w_per_hz)
        if snr < problem.rate.min_snr:
            continue
        bits_per_hz = problem.rate.efficiency * math.log2(1 + snr)
        if problem.rate.max_spectral_efficiency is not None:
            bits_per_hz = min(bits_per_hz, problem.rate.max_spectral_efficiency)
        seconds = problem.model_bits / (problem.bandwidth_hz * bits_per_hz)
        circuit_w = np.broadcast_to(problem.radio.circuit_power_w, problem.num_devices)[i]
        drain = watts / problem.radio.amplifier_efficiency + float(circuit_w)
        ends = [math.inf]
        if problem.max_delay_s is not None:
            ends.append(float(np.broadcast_to(problem.max_delay_s, problem.num_devices)[i]))
        if problem.max_energy_j is not None:
            ends.append(float(np.asarray(problem.max_energy_j)[i]) / drain)
        if problem.max_round_delay_s is not None:
            ends.append(max(problem.max_round_delay_s - problem.fixed_delay_s - computing_s, 0.0))
        if seconds <= min(ends) * (1 + 1e-9) and snr >= problem.min_snr * (1 - 1e-9):
            waterfall = problem.packet_error_waterfall
            gained += problem.contribution[i] * (math.exp(-waterfall / snr) if waterfall else 1.0)
        elif seconds > min(ends) * (1 + 1e-9):
            seconds = min(ends)
        paid += price[i] * drain * seconds
        longest_s = max(longest_s, seconds)
    return gained - paid - problem.delay_weight * (computing_s + longest_s)


@pytest.mark.parametrize("seed", range(150))
def test_worth_and_regret_on_random_problems_with_wrong_gains(seed: int) -> None:
    rng = np.random.default_rng(seed)
    truth = random_problem(seed)
    error = 10.0 ** (rng.normal(0.0, rng.choice([1.0, 5.0, 10.0]), truth.channel_gain.shape) / 10.0)
    believed = replace(truth, channel_gain=truth.channel_gain * error)
    plan = allocate(believed)
    met = evaluate(plan, truth)
    optimum = allocate(truth)
    assert met.objective == pytest.approx(worth_by_definition(plan, truth), rel=1e-9, abs=1e-9)
    scale = abs(optimum.objective) + abs(met.objective) + truth.contribution.max(initial=0.0)
    assert met.regret(optimum) >= -1e-12 * scale
    assert met.regret(optimum) == optimum.upper_bound - met.objective
    same = evaluate(optimum, truth)
    assert 0.0 <= same.regret(optimum) + 1e-12 * scale <= optimum.gap * abs(optimum.objective) + 2e-12 * scale


def test_a_plan_for_another_number_of_devices_is_refused() -> None:
    with pytest.raises(
        ProblemError, match="The allocation is of another problem: block_of_device has the shape"
    ):
        evaluate(allocate(paper_problem(0)), small_problem())
    with pytest.raises(TypeError, match="problem must be of type AllocationProblem"):
        evaluate(small_problem(), allocate(small_problem()))  # type: ignore[arg-type]
