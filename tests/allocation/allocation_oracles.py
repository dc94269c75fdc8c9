"""Slow, literal answers to compare with: straggler loops, bisection, enumeration, and SCIP."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np

from fedwave.allocation import AllocationProblem


def cpu_cost(problem: AllocationProblem, frequency: np.ndarray) -> float:
    """Return g1 of (SP1), term by term."""
    busy = problem.workload_cycles > 0
    price = np.broadcast_to(problem.energy_weight, busy.shape)
    energy = sum(
        price[i]
        * (
            (problem.capacitance[i] / 2 * frequency[i] ** 3 + problem.static_power_w[i])
            * (problem.workload_cycles[i] / frequency[i])
            + problem.joules_per_cycle[i] * problem.workload_cycles[i]
        )
        for i in np.flatnonzero(busy)
    )
    delay = max((problem.workload_cycles[i] / frequency[i] for i in np.flatnonzero(busy)), default=0.0)
    return energy + problem.delay_weight * delay


def frequencies_by_stragglers(problem: AllocationProblem) -> np.ndarray:
    """Return the frequencies of Lemma 4 and Theorem 2: assume each straggler in turn, keep the best."""
    work, fastest = problem.workload_cycles, problem.max_frequency_hz
    busy = np.flatnonzero(work > 0)
    best, best_cost = np.zeros(work.size), math.inf
    for j in busy:
        a1 = problem.energy_weight * sum(
            problem.capacitance[i] * work[i] ** 3 / (2 * work[j] ** 2) for i in busy
        )
        a2 = problem.delay_weight * work[j]
        frequency_j = min((a2 / (2 * a1)) ** (1 / 3), min(work[j] * fastest[i] / work[i] for i in busy))
        frequency = np.zeros(work.size)
        for i in busy:
            frequency[i] = work[i] * frequency_j / work[j]
        cost = cpu_cost(problem, frequency)
        if cost < best_cost:
            best, best_cost = frequency, cost
    return best


def snr_by_bisection(c: float) -> float:
    """Return the zero of f4 on (0, b2], Lemma 6, by bisection."""

    def f4(p: float) -> float:
        return (1 + p) * math.log2(1 + p) * math.log(2) - p - c

    low, high = 0.0, 2 ** ((1 + math.sqrt(max(c, 1) - 1)) / math.log(2))
    assert f4(high) >= 0
    for _ in range(1200):
        middle = (low + high) / 2
        low, high = (middle, high) if f4(middle) < 0 else (low, middle)
    return (low + high) / 2


def upload_value(problem: AllocationProblem, pairs: list[tuple[int, int]], power: dict[int, float]) -> float:
    """Return g2 of (SP2), term by term; minus infinity if a limit is broken by more than rounding."""
    total, slowest = 0.0, 0.0
    for i, m in pairs:
        gain = problem.channel_gain[i, m] if problem.is_frequency_selective else problem.channel_gain[i]
        noise = problem.interference_w[m] + problem.bandwidth_hz * problem.noise_psd_w_per_hz
        rate = problem.bandwidth_hz * math.log1p(gain * power[i] / noise) / math.log(2)
        if rate <= 0 or power[i] > problem.max_power_w[i] * (1 + 1e-12):
            return -math.inf
        delay = problem.model_bits / rate
        energy = delay * power[i]
        if problem.max_delay_s is not None and delay > problem.max_delay_s * (1 + 1e-9):
            return -math.inf
        if problem.max_energy_j is not None and energy > problem.max_energy_j[i] * (1 + 1e-9):
            return -math.inf
        total += problem.contribution[i] - problem.energy_weight * energy
        slowest = max(slowest, delay)
    return total - problem.delay_weight * slowest


def powers_by_stragglers(problem: AllocationProblem, pairs: list[tuple[int, int]]) -> dict[int, float]:
    """Return the powers of Lemma 6 and Theorem 4 (misprint repaired), one straggler after another."""
    watts = {}
    for i, m in pairs:
        gain = problem.channel_gain[i, m] if problem.is_frequency_selective else problem.channel_gain[i]
        watts[i] = (problem.interference_w[m] + problem.bandwidth_hz * problem.noise_psd_w_per_hz) / gain
    b1 = problem.energy_weight * sum(watts.values())
    best: dict[int, float] = {}
    best_value = -math.inf
    for j, _ in pairs:
        snr_j = min(
            snr_by_bisection(problem.delay_weight / b1),
            min(problem.max_power_w[i] / watts[i] for i, _ in pairs),
        )
        power_j = snr_j * watts[j]
        power = {i: watts[i] / watts[j] * power_j for i, _ in pairs}
        value = upload_value(problem, pairs, power)
        if value > best_value:
            best, best_value = power, value
    return best


def assignments(num_devices: int, num_blocks: int) -> Iterator[list[tuple[int, int]]]:
    """Yield every non-empty assignment as a list of (device, block)."""
    for blocks in itertools.product(range(-1, num_blocks), repeat=num_devices):
        used = [block for block in blocks if block >= 0]
        if used and len(set(used)) == len(used):
            yield [(i, m) for i, m in enumerate(blocks) if m >= 0]


def best_by_brute_force(problem: AllocationProblem, *, num_points: int = 400, num_zooms: int = 6) -> float:
    """Return the best g2 over every assignment and a fine, thrice-refined search over the delay.

    At a given delay each device takes the least power that meets it (any more only costs energy).
    """
    best = 0.0
    for pairs in assignments(problem.num_devices, problem.num_blocks):
        if problem.max_uploads is not None and len(pairs) > problem.max_uploads:
            continue
        best = max(best, _best_delay(problem, pairs, num_points, num_zooms))
    return best


def _best_delay(
    problem: AllocationProblem, pairs: list[tuple[int, int]], num_points: int, num_zooms: int
) -> float:
    device = np.array([i for i, _ in pairs])
    block = np.array([m for _, m in pairs])
    gain = (
        problem.channel_gain[device, block]
        if problem.is_frequency_selective
        else problem.channel_gain[device]
    )
    noise = problem.interference_w[block] + problem.bandwidth_hz * problem.noise_psd_w_per_hz
    limit = problem.max_power_w[device]
    if np.any(gain * limit == 0):
        return -math.inf
    full_rate = problem.bandwidth_hz * np.log1p(gain * limit / noise) / math.log(2)
    shortest = float((problem.model_bits / full_rate).max())
    longest = problem.max_delay_s if problem.max_delay_s is not None else shortest * 1e9
    if longest < shortest:
        return -math.inf
    low, high = math.log(shortest), math.log(longest)
    best = -math.inf
    energy_limit = math.inf if problem.max_energy_j is None else problem.max_energy_j[device][None, :]
    contribution = float(problem.contribution[device].sum())
    for _ in range(num_zooms):
        log_delay = np.linspace(low, high, num_points)
        delay = np.exp(log_delay)
        with np.errstate(over="ignore", invalid="ignore"):
            power = np.expm1(problem.model_bits * math.log(2) / (problem.bandwidth_hz * delay))[:, None] * (
                noise / gain
            )
            power = np.minimum(power, np.where(np.arange(num_points)[:, None] == 0, limit, np.inf))
            energy = power * delay[:, None]
            value = contribution - problem.energy_weight * energy.sum(axis=1) - problem.delay_weight * delay
            feasible = (energy <= energy_limit).all(axis=1) & (power <= limit * (1 + 1e-9)).all(axis=1)
        value = np.where(feasible, value, -np.inf)
        top = int(np.argmax(value))
        best = max(best, float(value[top]))
        if not feasible.any():
            return best
        low, high = log_delay[max(top - 2, 0)], log_delay[min(top + 2, num_points - 1)]
    return best


def best_by_scip(problem: AllocationProblem, *, gap: float = 1e-6) -> float:
    """Return the optimum of (SP2) from SCIP: each device has a power, a delay and an energy of its own."""
    from pyscipopt import Model, log, quicksum

    model = Model()
    model.hideOutput()
    model.setParam("limits/gap", gap)
    model.setParam("limits/time", 60)
    n, num_blocks = problem.num_devices, problem.num_blocks
    nat_time = problem.model_bits * math.log(2) / problem.bandwidth_hz
    noise = problem.interference_w + problem.bandwidth_hz * problem.noise_psd_w_per_hz
    gain = (
        problem.channel_gain
        if problem.is_frequency_selective
        else np.repeat(problem.channel_gain[:, None], num_blocks, axis=1)
    )
    most = float(np.maximum(problem.contribution, 0).sum())
    longest = most / problem.delay_weight
    if problem.max_delay_s is not None:
        longest = min(longest, problem.max_delay_s)
    round_delay = model.addVar(lb=0, ub=longest)
    z = {(i, m): model.addVar(vtype="B") for i in range(n) for m in range(num_blocks)}
    costs = []
    for i in range(n):
        model.addCons(quicksum(z[i, m] for m in range(num_blocks)) <= 1)
        snr_limit = float((gain[i] * problem.max_power_w[i] / noise).max())
        snr = model.addVar(lb=1e-6, ub=snr_limit)
        nats = model.addVar(lb=0, ub=math.log1p(snr_limit))
        model.addCons(nats == log(1 + snr))
        factor = model.addVar(lb=1, ub=snr_limit / math.log1p(snr_limit) + 1e-9)  # energy per s (I + BN0) / h
        model.addCons(factor * nats == snr)
        is_selected = model.addVar(vtype="B")
        model.addCons(is_selected == quicksum(z[i, m] for m in range(num_blocks)))
        model.addCons(round_delay * nats >= nat_time * is_selected)
        for m in range(num_blocks):
            cap = float(gain[i, m] * problem.max_power_w[i] / noise[m])
            model.addCons(snr <= cap + (snr_limit - cap) * (1 - z[i, m]))
            unit = nat_time * noise[m] / float(gain[i, m])
            largest = unit * (snr_limit / math.log1p(snr_limit) + 1e-9)
            energy = model.addVar(lb=0, ub=largest)
            model.addCons(energy >= unit * factor - largest * (1 - z[i, m]))
            if problem.max_energy_j is not None:
                model.addCons(energy <= float(problem.max_energy_j[i]))
            costs.append(problem.energy_weight * energy)
    for m in range(num_blocks):
        model.addCons(quicksum(z[i, m] for i in range(n)) <= 1)
    value = quicksum(float(problem.contribution[i]) * z[i, m] for i, m in z)
    model.setObjective(value - quicksum(costs) - problem.delay_weight * round_delay, "maximize")
    model.optimize()
    assert model.getStatus() in ("optimal", "gaplimit"), model.getStatus()
    return float(model.getObjVal())
