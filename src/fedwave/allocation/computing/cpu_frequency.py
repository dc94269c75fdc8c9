"""SP1, the CPU frequencies of one round, in closed form; and each device's selfish choice, Eq. (55)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from fedwave.allocation.computing.compute_curve import ComputeCurve, frequency_floor_hz
from fedwave.allocation.problem import AllocationProblem
from fedwave.allocation.tolerance import exceeds, missed_by
from fedwave.units import FloatArray
from fedwave.wireless.link import compute_delay_s, compute_energy_j


@dataclass(frozen=True, kw_only=True, eq=False)
class CpuPlan:
    """CPU frequencies of all devices; ``reason`` is not empty if the work cannot end in time."""

    cpu_frequency_hz: FloatArray
    reason: str = ""


def solve_cpu_frequencies(problem: AllocationProblem, *, finish_by_s: float = math.inf) -> CpuPlan:
    """Return the frequencies that solve (SP1), Lemma 4 and Theorem 2, without their loop over stragglers.

    All devices finish together, at T = max{(eta_1 sum iota w^3 / eta_2)^(1/3), max w / nu_max}, w = tau c
    D: whoever finishes early could save energy by slowing down. O(n). Whoever would be below its least
    frequency, or below nu* = (P_0 / iota)^(1/3), runs at that and is left out of the sum: see
    compute_curve.py. ``finish_by_s`` is a deadline.
    """
    impossible = _first_impossible(problem)
    if impossible:
        return CpuPlan(cpu_frequency_hz=problem.max_frequency_hz.copy(), reason=impossible)
    finish_s = unhurried_finish_s(problem)
    if finish_s == 0.0:
        return CpuPlan(cpu_frequency_hz=np.zeros(problem.num_devices))
    if finish_by_s < finish_s:
        finish_s = max(problem.fastest_compute_s, finish_by_s)
    return CpuPlan(cpu_frequency_hz=frequencies_by(problem, finish_s))


def frequencies_by(problem: AllocationProblem, finish_s: float) -> FloatArray:
    """Return the frequencies at which all are done by this time and each takes the least energy."""
    return _at_least(problem, np.minimum(problem.workload_cycles / finish_s, problem.max_frequency_hz))


def unhurried_finish_s(problem: AllocationProblem) -> float:
    """Return T of (SP1), within the deadlines for computing and for the round; 0 if nobody has work."""
    largest = float(problem.workload_cycles.max(initial=0.0))
    if largest == 0.0:
        return 0.0
    # The cap is min over i of c_j D_j nu_i_max / (c_i D_i); Eq. (36) prints nu_j_max, see docs/deviations.md.
    return max(problem.fastest_compute_s, min(_best_finish_s(problem, largest), problem.compute_deadline_s))


def selfish_cpu_frequencies(problem: AllocationProblem) -> CpuPlan:
    """Return each device's own best frequency, Eq. (55): nu = min{(eta_2 / (eta_1 iota))^(1/3), nu_max}.

    With static power a second of computing costs eta_2 + eta_1 P_0. A compute deadline raises the frequency
    to what the deadline needs.
    """
    impossible = _first_impossible(problem)
    if impossible:
        return CpuPlan(cpu_frequency_hz=problem.max_frequency_hz.copy(), reason=impossible)
    price = problem.energy_weight * problem.capacitance
    frequency = np.where(price > 0, 0.0, problem.max_frequency_hz)  # free energy: as fast as possible
    has_price = price > 0
    reward = problem.delay_weight + problem.energy_weight * np.asarray(problem.static_power_w)
    frequency[has_price] = np.cbrt(reward[has_price] / price[has_price])
    deadline_s = problem.compute_deadline_s
    if deadline_s < math.inf:
        frequency = np.maximum(frequency, problem.workload_cycles / deadline_s)
    frequency = np.minimum(frequency, problem.max_frequency_hz)
    return CpuPlan(cpu_frequency_hz=_at_least(problem, np.where(problem.workload_cycles > 0, frequency, 0.0)))


def compute_cost(problem: AllocationProblem, cpu_frequency_hz: FloatArray) -> float:
    """Return g1 of (SP1): eta_1 times the energy of computing plus eta_2 times its delay."""
    cost = 0.0
    if problem.counts_energy:
        energy = compute_energy_j(
            cpu_frequency_hz,
            workload_cycles=problem.workload_cycles,
            capacitance=problem.capacitance,
            static_power_w=problem.static_power_w,
            joules_per_cycle=problem.joules_per_cycle,
        )
        cost += problem.energy_cost(energy)
    if problem.delay_weight:
        delay = compute_delay_s(cpu_frequency_hz, workload_cycles=problem.workload_cycles)
        cost += problem.delay_weight * float(delay.max(initial=0.0))
    return cost


def full_cpu_frequencies(problem: AllocationProblem) -> CpuPlan:
    """Return every device's maximum frequency (0 for a device without work)."""
    frequency = np.where(problem.workload_cycles > 0, problem.max_frequency_hz, 0.0)
    return CpuPlan(cpu_frequency_hz=frequency, reason=_first_impossible(problem))


def random_cpu_frequencies(problem: AllocationProblem, *, rng: np.random.Generator) -> CpuPlan:
    """Return frequencies drawn uniformly from the feasible region, by default (0, nu_max], Sec. VII."""
    share = 1.0 - rng.random(problem.num_devices)  # in (0, 1]: frequency 0 would never finish
    impossible = _first_impossible(problem)
    if impossible:
        return CpuPlan(cpu_frequency_hz=problem.max_frequency_hz.copy(), reason=impossible)
    slowest: FloatArray = np.zeros(problem.num_devices)
    deadline_s = problem.compute_deadline_s
    if deadline_s < math.inf:
        slowest = np.minimum(problem.workload_cycles / deadline_s, problem.max_frequency_hz)
    if problem.min_frequency_hz is not None:
        slowest = np.maximum(slowest, problem.min_frequency_hz)
    frequency = slowest + share * (problem.max_frequency_hz - slowest)
    return CpuPlan(cpu_frequency_hz=np.where(problem.workload_cycles > 0, frequency, 0.0))


def _best_finish_s(problem: AllocationProblem, largest: float) -> float:
    """Return (eta_1 sum iota w^3 / eta_2)^(1/3), scaled by the largest w so that nothing overflows."""
    if problem.min_frequency_hz is not None or np.any(problem.static_power_w):
        return ComputeCurve.of(problem).best_finish_s(problem.delay_weight)
    relative = problem.workload_cycles / largest
    if problem.has_prices:
        price = float(np.dot(problem.energy_weight * problem.capacitance, relative**3))
    else:
        price = float(problem.energy_weight) * float(np.dot(problem.capacitance, relative**3))
    if price == 0.0:
        return 0.0  # energy is free: as fast as possible
    if problem.delay_weight == 0.0:
        return math.inf
    return largest * float(np.cbrt(price / problem.delay_weight))


def _at_least(problem: AllocationProblem, frequency: FloatArray) -> FloatArray:
    """Return the frequencies of those that work, raised to their floors."""
    floor = frequency_floor_hz(problem)
    if floor is None:
        return frequency
    return np.where(problem.workload_cycles > 0, np.maximum(frequency, floor), 0.0)


def _first_impossible(problem: AllocationProblem) -> str:
    workload, fastest = problem.workload_cycles, problem.max_frequency_hz
    is_stuck = (workload > 0) & (fastest == 0)
    if is_stuck.any():
        device = int(np.argmax(is_stuck))
        return (
            f"device {device} has {workload[device]:g} cycles of work but max_frequency_hz = 0, so the round "
            "never ends; leave it out or give it a frequency > 0"
        )
    limits = {"max_compute_delay_s": (problem.max_compute_delay_s, 0.0)}
    limits["max_round_delay_s"] = (problem.max_round_delay_s, problem.fixed_delay_s)
    for name, (limit_s, fixed_s) in limits.items():
        if limit_s is None or not exceeds(problem.fastest_compute_s + fixed_s, limit_s):
            continue
        needed_s = problem.fastest_compute_s
        is_busy = workload > 0
        time_s = np.divide(workload, fastest, out=np.zeros(workload.shape), where=is_busy)
        share = (needed_s + fixed_s) / limit_s - 1.0
        return (
            f"device {int(np.argmax(time_s))} cannot compute by {limit_s - fixed_s:g} s even at full "
            f"frequency (it needs {needed_s:.6g} s): it {missed_by(share, name)}"
        )
    return ""
