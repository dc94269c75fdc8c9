"""Answers that share no code with the accesses: definitions, all choices, and scipy's general solvers."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, brentq, milp, minimize, minimize_scalar

from fedwave.allocation import AllocationProblem
from fedwave.allocation.access.band import Band, shared_band
from fedwave.wireless.rate import RadioPower, RateModel

FEATURES = ("cap", "floor", "outage", "amplifier", "energy", "deadline", "few", "round", "circuit")


def alike_problem(
    rng: np.random.Generator, access: str, *, n: int, m: int, features: Any = ()
) -> AllocationProblem:
    """Return a random problem with equal blocks around SNRs of 1, with some features of the link."""
    values: dict[str, Any] = {
        "contribution": rng.uniform(-0.5, 6, n),
        "channel_gain": rng.uniform(0.1, 1, n),
        "interference_w": np.full(m, float(rng.uniform(0, 0.8))),
        "max_power_w": rng.uniform(0.05, 2, n),
        "workload_cycles": 0.0,
        "max_frequency_hz": 1.0,
        "capacitance": 0.0,
        "model_bits": float(rng.uniform(0.3, 2)),
        "bandwidth_hz": float(rng.uniform(0.3, 2)),
        "noise_psd_w_per_hz": 1.0,
        "energy_weight": float(rng.uniform(0.1, 1.5)),
        "delay_weight": float(rng.uniform(0.05, 1.5)),
        "access": access,
    }
    efficiency, floor, cap = 1.0, 0.0, None
    if "cap" in features:
        efficiency, cap = float(rng.uniform(0.4, 1)), float(rng.uniform(0.3, 2))
    if "floor" in features:
        floor = float(rng.uniform(0.02, 0.15))
    values["rate"] = RateModel(efficiency=efficiency, max_spectral_efficiency=cap, min_snr=floor)
    if "outage" in features:
        values["min_snr"] = float(min(rng.uniform(0.05, 0.5), values["rate"].max_snr))
    xi = float(rng.uniform(0.3, 1)) if "amplifier" in features else 1.0
    circuit = float(rng.uniform(0.02, 0.5)) if "circuit" in features else 0.0
    if access == "shared-band" and "energy" in features:
        circuit = 0.0  # no proof for both
    values["radio"] = RadioPower(amplifier_efficiency=xi, circuit_power_w=circuit)
    if "energy" in features:
        values["max_energy_j"] = rng.uniform(0.5, 6, n)
    if "deadline" in features:
        values["max_delay_s"] = float(rng.uniform(0.5, 6))
    if "few" in features:
        values["max_uploads"] = int(rng.integers(1, 3))
    if "round" in features:
        values |= {"workload_cycles": rng.uniform(0.1, 1, n), "capacitance": 0.5, "max_frequency_hz": 2.0}
        values |= {"max_round_delay_s": float(rng.uniform(1, 6)), "fixed_delay_s": 0.1}
    return AllocationProblem(**values)


def subsets(problem: AllocationProblem) -> Iterator[list[int]]:
    """Yield every set of devices that may upload, the empty one, too."""
    most = problem.num_devices if problem.max_uploads is None else problem.max_uploads
    for size in range(min(most, problem.num_devices) + 1):
        yield from (list(chosen) for chosen in itertools.combinations(range(problem.num_devices), size))


def computing_cost(problem: AllocationProblem, delay_s: float) -> float:
    """Return the least cost of computing if the uploads take so long; infinite if the round is too short."""
    work = problem.workload_cycles
    if not work.any():
        return 0.0
    fastest = float((work / problem.max_frequency_hz).max())
    left = (
        math.inf if problem.max_round_delay_s is None else problem.max_round_delay_s - problem.fixed_delay_s
    )
    last = left - delay_s
    if last < fastest * (1 - 1e-12):
        return math.inf

    def cost(log_time: float) -> float:
        time = math.exp(log_time)
        energy = 0.5 * float((problem.capacitance * work * (work / time) ** 2).sum())
        return problem.energy_weight * energy + problem.delay_weight * time

    last = min(last, fastest * 1e4)
    if last <= fastest * (1 + 1e-9):
        return cost(math.log(fastest))
    found = minimize_scalar(
        cost, bounds=(math.log(fastest), math.log(last)), options={"xatol": 1e-11}, method="bounded"
    )
    return min(float(found.fun), cost(math.log(fastest)), cost(math.log(last)))


def bits_of(problem: AllocationProblem) -> np.ndarray:
    """Return the size of each device's upload."""
    return np.full(problem.num_devices, problem.model_bits if problem.device_bits is None else 0.0) + (
        0.0 if problem.device_bits is None else problem.device_bits
    )


def upload(problem: AllocationProblem, device: int, hertz: float, seconds: float) -> float:
    """Return the joules of an upload over so many hertz in so many seconds; infinite if a limit is broken."""
    bits = float(bits_of(problem)[device]) / (problem.rate.efficiency * hertz * seconds)
    if bits > 900:
        return math.inf
    noise = problem.block_noise_w[0] / problem.bandwidth_hz * hertz
    snr = 2.0**bits - 1.0
    power = snr * noise / problem.channel_gain[device]
    slack = 1 + 1e-9
    if power > problem.max_power_w[device] * slack or snr > problem.rate.max_snr * slack:
        return math.inf
    if snr < max(problem.min_snr, problem.rate.min_snr) / slack:
        return math.inf
    joules = seconds * (power / problem.radio.amplifier_efficiency + problem.radio.circuit_power_w)
    if problem.max_energy_j is not None and joules > np.asarray(problem.max_energy_j)[device] * slack:
        return math.inf
    return joules


def longest(problem: AllocationProblem) -> float:
    """Return a delay that is longer than any worth it."""
    total = float(np.maximum(problem.contribution, 0).sum())
    last = total / problem.delay_weight + 1e-9
    if problem.max_delay_s is not None:
        last = min(last, problem.max_delay_s)
    if problem.max_round_delay_s is not None:
        last = min(last, problem.max_round_delay_s)
    return last


def cheapest(problem: AllocationProblem, device: int, hertz: float, last: float) -> float:
    """Return the least joules of an upload over so many hertz that ends by then, by a fine search."""
    times = np.geomspace(last * 1e-4, last, 400)
    joules = np.array([upload(problem, device, hertz, t) for t in times])
    best = int(joules.argmin())
    if not math.isfinite(joules[best]):
        return math.inf
    low, high = times[max(best - 1, 0)], times[min(best + 1, times.size - 1)]
    found = minimize_scalar(
        lambda t: min(upload(problem, device, hertz, t), 1e9),
        bounds=(low, high),
        options={"xatol": 1e-10},
        method="bounded",
    )
    return min(float(joules[best]), float(found.fun))


def best_blocks(problem: AllocationProblem, *, points: int = 60) -> float:
    """Return the best objective over all numbers of blocks and a refined grid of delays."""
    best = -computing_cost(problem, 0.0)
    last = longest(problem)
    grid = np.geomspace(last * 1e-3, last, points)
    for _ in range(3):
        values = []
        for delay in grid:
            values.append(_blocks_at(problem, float(delay)))
        top = int(np.argmax(values))
        best = max(best, values[top])
        grid = np.linspace(grid[max(top - 1, 0)], grid[min(top + 1, points - 1)], points)
    return best


def _blocks_at(problem: AllocationProblem, delay: float) -> float:
    n, m = problem.num_devices, problem.num_blocks
    worth = np.full((n, m + 1), -np.inf)
    worth[:, 0] = 0.0
    for i, k in itertools.product(range(n), range(1, m + 1)):
        times = (
            [delay]
            if problem.radio.circuit_power_w == 0 and problem.min_snr == 0 and problem.rate.min_snr == 0
            else None
        )
        hertz = k * problem.bandwidth_hz
        joules = upload(problem, i, hertz, delay) if times else cheapest(problem, i, hertz, delay)
        worth[i, k] = problem.contribution[i] - problem.energy_weight * joules
    best = -math.inf
    most = n if problem.max_uploads is None else problem.max_uploads
    for counts in itertools.product(range(m + 1), repeat=n):
        if sum(counts) <= m and sum(k > 0 for k in counts) <= most:
            best = max(best, sum(worth[i, k] for i, k in enumerate(counts)))
    return best - problem.delay_weight * delay - computing_cost(problem, delay)


def best_areas(problem: AllocationProblem) -> float:
    """Return the best objective over all sets and, for each, a general solver over areas and delay.

    For a given set the problem is concave, so what the solver finds is the best, up to its tolerance.
    """
    best = -computing_cost(problem, 0.0)
    for chosen in subsets(problem):
        if chosen:
            best = max(best, _best_of_set(problem, chosen))
    return best


def _best_of_set(problem: AllocationProblem, chosen: list[int]) -> float:
    band = problem.num_blocks * problem.bandwidth_hz
    index = np.array(chosen)
    nats = bits_of(problem)[index] * math.log(2) / problem.rate.efficiency
    noise = problem.block_noise_w[0] / problem.bandwidth_hz
    unit = nats * noise / problem.channel_gain[index]
    xi, circuit = problem.radio.amplifier_efficiency, problem.radio.circuit_power_w
    has_slots = problem.access == "tdma"
    last = longest(problem)
    floor = max(problem.min_snr, problem.rate.min_snr)
    most_v = min(math.log1p(problem.rate.max_snr), 60.0)
    least_v = math.log1p(floor) if floor > 0 else 1e-4
    u, eta1, eta2 = problem.contribution[index].sum(), problem.energy_weight, problem.delay_weight

    def split(x: np.ndarray) -> tuple[np.ndarray, float]:
        areas = np.exp(x[:-1])  # in units of the model's nats
        return areas, (float((areas * nats).sum()) / band if has_slots else float(np.exp(x[-1])))

    def cost(x: np.ndarray) -> float:
        areas, delay = split(x)
        energy = unit / xi * areas * np.expm1(1 / areas)
        # over slots each is on for its own; over shares until all are done
        energy = energy + circuit * (areas * nats / band if has_slots else delay)
        hurry = computing_cost(problem, delay)
        return eta1 * float(energy.sum()) + eta2 * delay + (hurry if math.isfinite(hurry) else 1e6)

    def margins(x: np.ndarray) -> np.ndarray:
        areas, delay = split(x)
        sends = areas * nats / band if has_slots else np.full(areas.shape, delay)
        power = unit * areas * np.expm1(1 / areas) / sends
        rows = [np.log(problem.max_power_w[index] / power), [math.log(last / delay)]]
        if not has_slots:
            rows.append([math.log(band * delay / (areas * nats).sum())])
        if problem.max_energy_j is not None:
            joules = power * sends / xi + circuit * sends
            rows.append(np.log(np.asarray(problem.max_energy_j)[index] / joules))
        return np.concatenate(rows)

    bounds = [(-math.log(most_v), -math.log(least_v))] * len(chosen) + [
        (math.log(last * 1e-5), math.log(last))
    ]
    best = -math.inf
    for start_v in (0.3, 1.0, 2.5):
        v = min(max(start_v, least_v), most_v)
        delay = min(float(nats.sum()) / (v * band) * 1.2, last)
        x0 = np.array([-math.log(v)] * len(chosen) + [math.log(delay)])
        try:
            found = minimize(
                cost,
                x0,
                bounds=bounds,
                constraints={"type": "ineq", "fun": margins},
                method="SLSQP",
                options={"maxiter": 300, "ftol": 1e-12},
            )
        except (ValueError, OverflowError):
            continue
        if np.all(margins(found.x) > -1e-8) and math.isfinite(found.fun):
            best = max(best, float(u) - float(found.fun))
    return best


def priced_worth(problem: AllocationProblem, device: int, price: float, delay: float) -> float:
    """Return the most that a device can be worth over a share of the band if area has this price.

    Area is in units of the model's nats. By scipy's bounded search over v, between roots of the limits.
    """
    nats = problem.model_bits * math.log(2) / problem.rate.efficiency
    unit = nats * problem.block_noise_w[0] / problem.bandwidth_hz / problem.channel_gain[device]
    most = min(math.log1p(problem.rate.max_snr), 60.0)
    ceilings = [problem.max_power_w[device] * delay / unit]
    if problem.max_energy_j is not None:
        ceilings.append(np.asarray(problem.max_energy_j)[device] * problem.radio.amplifier_efficiency / unit)
    floor = max(problem.min_snr, problem.rate.min_snr)
    least = math.log1p(floor) if floor > 0 else 1e-9
    for ceiling in ceilings:
        if ceiling <= math.expm1(least) / least:
            return -math.inf
        if math.expm1(most) / most > ceiling:
            most = float(brentq(lambda v, top=ceiling: math.expm1(v) / v - top, least, most, xtol=1e-15))

    def cost(v: float) -> float:
        joules = unit / problem.radio.amplifier_efficiency * math.expm1(v) / v
        return float(problem.energy_weight * joules + price / v)

    found = minimize_scalar(cost, bounds=(least, most), method="bounded", options={"xatol": 1e-12})
    least_cost = min(found.fun, cost(least), cost(most))
    on = problem.energy_weight * problem.radio.circuit_power_w * delay
    return float(problem.contribution[device] - least_cost - on)


def option_worth(problem: AllocationProblem, device: int, count: int, delay: float) -> float:
    """Return the most that a device can be worth on so many whole blocks if it ends by then."""
    hertz = count * problem.bandwidth_hz
    nats = problem.model_bits * math.log(2) / problem.rate.efficiency
    noise = problem.block_noise_w[0] * count
    most = min(
        math.log1p(problem.rate.max_snr),
        math.log1p(problem.max_power_w[device] * problem.channel_gain[device] / noise),
    )
    floor = max(problem.min_snr, problem.rate.min_snr)
    least = nats / (hertz * delay)
    least = max(least, math.log1p(floor)) if floor > 0 else least
    if least > most:
        return -math.inf

    def cost(v: float) -> float:
        watts = noise / problem.channel_gain[device] * math.expm1(v)
        seconds = nats / (hertz * v)
        return float(problem.energy_weight * seconds * problem.radio.drain_w(np.array(watts)))

    found = minimize_scalar(cost, bounds=(least, most), method="bounded", options={"xatol": 1e-12})
    return float(problem.contribution[device] - min(found.fun, cost(least), cost(most)))


def by_mixed_integers(
    problem: AllocationProblem, widths: dict[int, list[float]], delays: list[float], *, most: int | None
) -> float:
    """Return the best objective by HiGHS: one delay of the list, and at most one width of each device's list.

    Over slots the widths are areas in hertz seconds, and their sum takes its time.
    """
    has_slots = problem.access == "tdma"
    band = problem.num_blocks * problem.bandwidth_hz
    worth, areas, owner, level = [], [], [], []
    for d, delay in enumerate(delays):
        for device, choices in widths.items():
            for width in choices:
                if has_slots:
                    joules = upload(problem, device, band, width / band)
                elif problem.radio.circuit_power_w > 0 or max(problem.min_snr, problem.rate.min_snr) > 0:
                    joules = cheapest(problem, device, width, delay)
                else:
                    joules = upload(problem, device, width, delay)
                if math.isfinite(joules):
                    worth.append(problem.contribution[device] - problem.energy_weight * joules)
                    areas.append(width if has_slots else width * delay)
                    owner.append(device)
                    level.append(d)
    if not worth:
        return -computing_cost(problem, 0.0)
    count, num = len(worth), len(delays)
    price = [problem.delay_weight * t + computing_cost(problem, t) for t in delays]
    objective = np.concatenate([-np.array(worth), np.minimum(price, 1e9)])
    rows, upper = [], []
    for device in widths:
        rows.append(np.concatenate([np.array(owner) == device, np.zeros(num)]))
        upper.append(1.0)
    room = np.concatenate([np.array(areas), -band * np.array(delays)])
    rows.append(room)
    upper.append(1e-9)
    for d in range(num):  # only options of the delay that is taken
        one = np.zeros(num)
        one[d] = -float(len(widths))
        rows.append(np.concatenate([np.array(level) == d, one]))
        upper.append(0.0)
    rows.append(np.concatenate([np.zeros(count), np.ones(num)]))
    upper.append(1.0)
    if most is not None:
        rows.append(np.concatenate([np.ones(count), np.zeros(num)]))
        upper.append(float(most))
    found = milp(
        objective,
        constraints=LinearConstraint(np.array(rows, dtype=float), ub=np.array(upper)),
        integrality=np.ones(count + num),
        bounds=Bounds(0, 1),
        options={"mip_rel_gap": 0.0},
    )
    assert found.success
    return max(-float(found.fun), -computing_cost(problem, 0.0))


def hurried_setting(seed: int) -> tuple[AllocationProblem, Band, float, float, float, float]:
    """Return a problem, its band, a range of delays in which peak powers bind, a delay inside and a price."""
    rng = np.random.default_rng([seed, 3])
    features = [("round",), ("cap", "round"), ("energy",), ("outage", "circuit"), ("circuit",)][seed % 5]
    problem = alike_problem(rng, "shared-band", n=5, m=2, features=features)
    problem = replace(problem, contribution=60.0 + 4.0 * problem.contribution)  # worth it near the limits
    band = shared_band(problem, np.arange(5))
    firsts = np.sort(band.first_delay_s())
    first_s = float(firsts[3]) * 1.02
    last_s = first_s * float(rng.uniform(1.3, 3.0))
    if "round" in features:  # late in the range the CPUs are hurried
        left_s = last_s / 0.97 + problem.fastest_compute_s
        problem = replace(problem, max_round_delay_s=left_s + problem.fixed_delay_s)
    here_s = first_s + float(rng.uniform(0.3, 0.7)) * (last_s - first_s)
    return problem, band, first_s, last_s, here_s, float(rng.uniform(4.0, 12.0))
