"""Problem (P) with its whole link by brute force: every assignment and delay, each device at its own SNR.

Written from the definitions alone: nothing here knows that worths are concave, that devices finish together
or that a favourite SNR exists.
"""

from __future__ import annotations

import math

import numpy as np

from fedwave.allocation import AllocationProblem
from tests.allocation.allocation_oracles import assignments

_SLACK = 1 + 1e-12  # limits hold up to rounding


class Pair:
    """One device on one block: what it is worth at any SNR of its own, and the best of it from an SNR on."""

    def __init__(self, problem: AllocationProblem, i: int, m: int, num_points: int = 3000) -> None:
        self.problem, self.i = problem, i
        self.price = float(np.broadcast_to(problem.energy_weight, problem.num_devices)[i])
        gain = problem.channel_gain[i, m] if problem.channel_gain.ndim == 2 else problem.channel_gain[i]
        self.noise = problem.interference_w[m] + problem.bandwidth_hz * problem.noise_psd_w_per_hz
        self.gain = float(gain)
        self.circuit_w = float(np.broadcast_to(problem.radio.circuit_power_w, problem.num_devices)[i])
        limit_s = np.inf if problem.max_delay_s is None else problem.max_delay_s
        self.deadline_s = float(np.broadcast_to(limit_s, problem.num_devices)[i])
        self.top = self.gain * problem.max_power_w[i] / self.noise
        self.snr = np.zeros(0)
        if self.top <= 0:
            return
        rate = problem.rate
        slowest = nat_time(problem) / self.deadline_s
        marks = [self.top, rate.min_snr, problem.min_snr, rate.max_snr, self._cheapest()]
        marks.append(math.expm1(slowest) if slowest < 600 else math.inf)
        marks = [mark for mark in marks if 0 < mark <= self.top]
        low = min(1e-9, 1e-3 * self.top)
        snr = np.unique(np.concatenate([np.geomspace(low, self.top, num_points), marks]))
        snr = snr[snr <= self.top]
        worth = self.worth(snr)
        with np.errstate(invalid="ignore"):
            left, right = worth[1:-1] - worth[:-2], worth[1:-1] - worth[2:]
        peaks = np.flatnonzero((left >= 0) & (right >= 0) & (left + right > 0) & np.isfinite(worth[1:-1]))
        extra = [self._climb(snr[k], snr[k + 2]) for k in peaks]
        # Where an energy limit cuts, the last good and the first bad point enclose it.
        good = np.isfinite(worth)
        extra += [self._edge(snr[k], snr[k + 1]) for k in np.flatnonzero(good[1:] != good[:-1])]
        self.marks = [*marks, *extra]
        snr = np.unique(np.concatenate([snr, extra]))
        self.snr, worth = snr, self.worth(snr)
        self.best_from = np.maximum.accumulate(worth[::-1])[::-1]

    def delay(self, snr):
        rate = self.problem.rate
        efficiency = rate.efficiency * np.log1p(snr) / math.log(2)
        if rate.max_spectral_efficiency is not None:
            efficiency = np.minimum(efficiency, rate.max_spectral_efficiency)
        with np.errstate(divide="ignore"):
            return self.problem.model_bits / (self.problem.bandwidth_hz * efficiency)

    def energy(self, snr):
        drain = snr * self.noise / self.gain / self.problem.radio.amplifier_efficiency
        return (drain + self.circuit_w) * self.delay(snr)

    def worth(self, snr):
        """Return u times success minus the energy's cost; minus infinity where a limit is broken."""
        problem = self.problem
        snr = np.asarray(snr, dtype=float)
        energy = self.energy(snr)
        with np.errstate(divide="ignore", under="ignore"):
            success = np.exp(-(problem.packet_error_waterfall or 0.0) / snr)
        value = problem.contribution[self.i] * success - self.price * energy
        fits = (snr <= self.top * _SLACK) & (snr * _SLACK >= max(problem.min_snr, problem.rate.min_snr))
        fits &= self.delay(snr) <= self.deadline_s * _SLACK
        if problem.max_energy_j is not None:
            fits &= energy <= problem.max_energy_j[self.i] * _SLACK
        return np.where(fits, value, -np.inf)

    def best(self, snr):
        """Return the best worth at the given SNRs or above."""
        if self.snr.size == 0:
            return np.full(np.shape(snr), -np.inf)
        place = np.searchsorted(self.snr, snr)
        above = np.append(self.best_from, -np.inf)[place]
        return np.maximum(above, self.worth(snr))

    def _cheapest(self):
        """Return the SNR of the least energy: an energy limit may leave only a little around it."""
        low, high = math.log(min(1e-9, 1e-3 * self.top)), math.log(self.top)
        for _ in range(120):
            a, b = low + 0.382 * (high - low), low + 0.618 * (high - low)
            costs = self.energy(np.exp([a, b]))
            low, high = (low, b) if costs[0] <= costs[1] else (a, high)
        return min(math.exp(0.5 * (low + high)), self.top)

    def _climb(self, low, high):
        for _ in range(80):
            a, b = low + 0.382 * (high - low), low + 0.618 * (high - low)
            low, high = (low, b) if self.worth(a) > self.worth(b) else (a, high)
        return 0.5 * (low + high)

    def _edge(self, low, high):
        is_low_good = np.isfinite(self.worth(low))
        for _ in range(200):
            middle = 0.5 * (low + high)
            if np.isfinite(self.worth(middle)) == is_low_good:
                low = middle
            else:
                high = middle
        return low if is_low_good else high


class Computing:
    """The least cost of computing, by any time by which it must end."""

    def __init__(self, problem: AllocationProblem) -> None:
        busy = problem.workload_cycles > 0
        self.problem = problem
        self.work, self.iota = problem.workload_cycles[busy], problem.capacitance[busy]
        self.static = np.asarray(problem.static_power_w)[busy]
        self.price = np.broadcast_to(problem.energy_weight, busy.shape)[busy]
        self.fixed = float((self.price * np.asarray(problem.joules_per_cycle)[busy] * self.work).sum())
        self.most = problem.max_frequency_hz[busy]
        self.least = np.zeros(self.work.size)
        if problem.min_frequency_hz is not None:
            self.least = problem.min_frequency_hz[busy]
        self.fastest = float((self.work / problem.max_frequency_hz[busy]).max(initial=0.0))
        if self.fastest == 0.0:
            return
        longest = self.fastest * 1e6
        if problem.max_compute_delay_s is not None:
            longest = problem.max_compute_delay_s
        low, high = math.log(self.fastest), math.log(longest)
        for _ in range(120):  # the cost is convex in the time
            a, b = low + 0.382 * (high - low), low + 0.618 * (high - low)
            costs = self.cost(np.exp([a, b]))
            low, high = (low, b) if costs[0] <= costs[1] * _SLACK else (a, high)  # level once all settle
        self.best = math.exp(0.5 * (low + high))

    def cost(self, finish_s):
        """Return what it costs if all end by a time, each at the frequency that takes it the least energy."""
        low = np.maximum(self.work / np.asarray(finish_s)[..., None], self.least)
        high = np.maximum(low, self.most)
        if self.static.any():
            for _ in range(100):  # the energy is convex in the frequency: halve by the sign of its slope
                middle = 0.5 * (low + high)
                falls = self.iota * middle < self.static / middle**2
                low, high = np.where(falls, middle, low), np.where(falls, high, middle)
        energy = (self.price * self.energy(low)).sum(axis=-1) + self.fixed
        delay = (self.work / low).max(axis=-1)
        return energy + self.problem.delay_weight * delay

    def energy(self, pace):
        return (0.5 * self.iota * pace**3 + self.static) * self.work / pace

    def by(self, limit_s):
        """Return the least cost for each time by which computing must end; infinite if that is too soon."""
        limit_s = np.asarray(limit_s, dtype=float)
        if self.fastest == 0.0:
            return np.where(limit_s >= 0, 0.0, np.inf)
        cost = self.cost(np.minimum(self.best, np.maximum(limit_s, self.fastest)))
        return np.where(limit_s * _SLACK < self.fastest, np.inf, cost)


def best_by_link_brute_force(problem: AllocationProblem) -> float:
    """Return the best objective of (P); minus infinity if the computing cannot end in time."""
    end = np.inf if problem.max_round_delay_s is None else problem.max_round_delay_s - problem.fixed_delay_s
    computing = Computing(problem)
    best = -float(computing.by(end))
    pairs = {
        (i, m): Pair(problem, i, m) for i in range(problem.num_devices) for m in range(problem.num_blocks)
    }
    for chosen in assignments(problem.num_devices, problem.num_blocks):
        if problem.max_uploads is not None and len(chosen) > problem.max_uploads:
            continue
        members = [pairs[pair] for pair in chosen]
        top = min(member.top for member in members)
        top = min(top, problem.rate.max_snr)
        if top <= 0:
            continue
        marks = [mark for member in members for mark in member.marks if mark <= top]
        low = 1e-7 * top
        grid = np.unique(np.concatenate([np.geomspace(low, top, 200), marks, [top]]))
        for _ in range(7):
            value = _total(problem, members, computing, grid, end)
            place = int(np.argmax(value))
            best = max(best, float(value[place]))
            if not np.isfinite(value[place]):
                break
            first, last = grid[max(place - 1, 0)], grid[min(place + 1, grid.size - 1)]
            grid = np.linspace(first, last, 41)
    return best


def nat_time(problem):
    return problem.model_bits * math.log(2) / (problem.bandwidth_hz * problem.rate.efficiency)


def _total(problem, members, computing, snr, end):
    delay = nat_time(problem) / np.log1p(snr)
    value = sum(member.best(snr) for member in members) - problem.delay_weight * delay
    value = value - computing.by(end - delay)
    return np.where(np.isnan(value), -np.inf, value)
