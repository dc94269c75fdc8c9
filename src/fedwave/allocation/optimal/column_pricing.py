"""Column pricing: what each device outside the search's table would make at the duals of a matching.

The search works on few devices, the columns of its table. Here all others are held against the duals of its
blocks, see block_duals.py; a profit is a reduced cost with the sign that lets a column enter. Who makes
nothing at either end of a node cannot improve on the node's bound anywhere in it, because weights are
straight lines in e and a mixture of two proofs is a proof in between. Whoever makes a profit raises the
bound by that much, and is a candidate for the table. Power and energy limits are taken a little too
generously here, which is safe: it only finds profits that are none, and the table has the exact limits.

With one gain per device, the profit is u - phi(1 / h), phi(b) = min over m of (pi[m] + c[m] b): one concave
function of b, evaluated for all devices at once, and again for those who only reach the quieter blocks. With
gains h[i, m] a device's best gain among blocks of similar noise bounds its profit there. Only who passes is
looked at block by block.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from fedwave.allocation.problem import AllocationProblem
from fedwave.allocation.uploads.power import energy_factor
from fedwave.allocation.uploads.snr_range import relaxed_snr_floor, snr_floor
from fedwave.units import FloatArray, IntArray

_GENEROUS = 1.0 - 1e-6  # share of a limit that counts as keeping to it
_FEW = 200  # devices that are looked at block by block right away
_CHUNK_PAIRS = 100_000  # pairs held in memory at a time
_CLASSES = 8  # of blocks with similar noise


@dataclass(frozen=True, eq=False)
class BlockDuals:
    """Dual prices of the blocks at some energy factor, for pairs that can reach the smallest cap."""

    value: FloatArray  # (M,), by block
    energy_factor: float
    smallest_cap: float
    touching_snr: float = 0.0  # of the tangents, where worths are curved


@dataclass(frozen=True, eq=False)
class Profits:
    """Who would make a profit at these duals, on which block, and what all of them make together, at most.

    A device may be named for several blocks.
    """

    device: IntArray
    block: IntArray
    profit: FloatArray
    total: float


class Pricing(Protocol):
    """Prices all devices that may upload, apart from those taken inside."""

    device: IntArray
    largest_contribution: float

    def best_gains(self) -> FloatArray:
        """Return each device's largest gain over noise."""
        ...

    def take_inside(self, device: IntArray) -> None:
        """Leave these devices out from now on."""
        ...

    def profits(self, every: Sequence[BlockDuals]) -> list[Profits]:
        """Return who would make a profit at each of the duals given."""
        ...


class ColumnPricing:
    """All devices that may upload; those taken ``inside`` are no longer looked at."""

    def __init__(self, problem: AllocationProblem, device: IntArray) -> None:
        self._problem = problem
        # A price of each device's own counts as a weaker gain, h / a, but not for what it can reach.
        self._price: FloatArray | None = None
        if not problem.is_frequency_selective:
            gain = problem.channel_gain[device]
            rank = -gain if not problem.has_prices else problem.price_of(device) * (1.0 / gain)
            device = device[np.argsort(rank, kind="stable")]
        self.device = device
        if problem.has_prices:
            self._price = np.asarray(problem.price_of(device))
        self._contribution = problem.contribution[device]
        self._power = problem.max_power_w[device]
        xi = problem.radio.amplifier_efficiency
        self._unit_energy = problem.nat_delay_s / xi  # times noise / gain: an upload's energy at e = 1
        self._unit_cost = self._unit_energy  # times a
        if not problem.has_prices:
            self._unit_cost = float(problem.energy_weight) * self._unit_energy
        self._energy = None if problem.max_energy_j is None else problem.energy_limit_of(device)
        self._noise = problem.block_noise_w
        self._quietest_first = np.argsort(self._noise, kind="stable")
        self._is_outside = np.ones(device.size, dtype=bool)
        self._floor, self._relaxed_floor = snr_floor(problem), relaxed_snr_floor(problem)
        if not problem.is_frequency_selective:
            self._gain = problem.channel_gain[device]
            self._inverse = 1.0 / self._gain
        else:
            self._classes = np.array_split(self._quietest_first, min(_CLASSES, self._noise.size))
            self._best = np.empty((len(self._classes), device.size))
            for rows in self._chunks():
                ratio = problem.channel_gain[device[rows]] / self._noise
                for best, blocks in zip(self._best, self._classes, strict=True):
                    best[rows] = ratio[:, blocks].max(axis=1)
            self._inverse = 1.0 / np.maximum(self._best.max(axis=0), 1e-300)
        if self._price is not None:
            self._inverse = self._price * self._inverse
        self.largest_contribution = float(np.sort(self._contribution)[-problem.num_blocks :].sum())

    def best_gains(self) -> FloatArray:
        """Return each device's largest gain over noise."""
        if not self._problem.is_frequency_selective:
            return np.asarray(self._gain / self._noise.min())
        return np.asarray(self._best.max(axis=0))

    def take_inside(self, device: IntArray) -> None:
        """Leave these devices out from now on."""
        self._is_outside &= ~np.isin(self.device, device)

    def profits(self, every: Sequence[BlockDuals]) -> list[Profits]:
        """Return who would make a profit at each of the duals given."""
        if self._problem.is_frequency_selective:
            return [self._profits_on_own_gains(duals) for duals in every]
        return [self._profits_on_shared_gain(duals) for duals in every]

    def _needed_gain(self, smallest_cap: float, rows: IntArray | slice = slice(None)) -> FloatArray:
        """Return the gain over noise that each device needs at least to reach an SNR, generously."""
        snr = smallest_cap
        if snr <= self._floor:  # who almost meets the floor counts as standing on it
            snr = min(snr, self._relaxed_floor)
        needed = snr * _GENEROUS / self._power[rows]
        if self._energy is not None:
            least = self._unit_energy * energy_factor(snr) * _GENEROUS
            with np.errstate(divide="ignore"):
                needed = np.maximum(needed, least / self._energy[rows])
        return needed

    def _profits_on_shared_gain(self, duals: BlockDuals) -> Profits:
        """Return the profits at these duals, from bounds that count fewer blocks for the weaker devices."""
        cost = self._unit_cost * duals.energy_factor * self._noise
        noise = self._noise[self._quietest_first]
        reach = self._gain / self._needed_gain(duals.smallest_cap)  # the most noise that each can bear
        bound = self._contribution - _lower_envelope(cost, duals.value, self._inverse)
        found = np.flatnonzero((bound > 0.0) & self._is_outside & (reach >= noise[0]))
        bound, reach = bound[found], reach[found]
        count = 1
        while count < noise.size and found.size > _FEW:
            is_weak = np.flatnonzero(reach < noise[count])
            some = self._quietest_first[:count]
            weak = found[is_weak]
            envelope = _lower_envelope(cost[some], duals.value[some], self._inverse[weak])
            bound[is_weak] = np.minimum(bound[is_weak], self._contribution[weak] - envelope)
            count *= 2
        is_gain = bound > 0.0
        found, bound = found[is_gain], bound[is_gain]
        return self._exact(duals, found[np.argsort(-bound, kind="stable")], np.sort(bound)[::-1])

    def _exact(self, duals: BlockDuals, found: IntArray, bound: FloatArray | None = None) -> Profits:
        """Return the profits of these rows, looked at on every block.

        With bounds on them, the largest first, the last ones are not looked at if there are enough without
        them.
        """
        cost = self._unit_cost * duals.energy_factor * self._noise
        nobody = np.zeros(0, dtype=np.int64)
        device, blocks, profits = [nobody], [nobody], [np.zeros(0)]
        rest, num_found = np.zeros(0), 0
        size = max(1, _CHUNK_PAIRS // self._noise.size)
        for start in range(0, found.size, size):
            if bound is not None and num_found > 4 * self._noise.size:
                rest = bound[start:]
                break
            rows = found[start : start + size]
            gain = self._gains_of(rows)
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                priced = cost / gain if self._price is None else cost * self._price[rows][:, None] / gain
                profit = self._contribution[rows][:, None] - duals.value - priced
            needed = self._needed_gain(duals.smallest_cap, rows)
            profit[(gain < needed[:, None] * self._noise) | (gain == 0.0)] = -np.inf
            block = profit.argmax(axis=1)
            best = profit[np.arange(rows.size), block]
            is_gain = best > 0.0
            device.append(self.device[rows[is_gain]])
            blocks.append(block[is_gain])
            profits.append(best[is_gain])
            num_found += int(np.count_nonzero(is_gain))
        every = np.concatenate(profits)
        # No matching has more than M devices.
        most = np.sort(np.concatenate([every, rest]))[-self._noise.size :]
        return Profits(np.concatenate(device), np.concatenate(blocks), every, float(most.sum()))

    def _gains_of(self, rows: IntArray) -> FloatArray:
        """Return the gains of these rows on all blocks, (k, M) or (k, 1)."""
        gain = self._problem.channel_gain[self.device[rows]]
        return gain if self._problem.is_frequency_selective else gain[:, None]

    def _profits_on_own_gains(self, duals: BlockDuals) -> Profits:
        """Return the profits at these duals, from bounds by the best gains on blocks of similar noise."""
        cost = self._unit_cost * duals.energy_factor
        with np.errstate(over="ignore"):
            bound = self._contribution - (duals.value.min() + cost * self._inverse)
        found = np.flatnonzero((bound > 0.0) & self._is_outside)
        needed = self._needed_gain(duals.smallest_cap, found)
        bound = np.full(found.size, -np.inf)
        for blocks, best in zip(self._classes, self._best, strict=True):
            gain = best[found]
            can = np.flatnonzero((gain >= needed) & (gain > 0.0))
            priced = cost / gain[can] if self._price is None else cost * self._price[found[can]] / gain[can]
            level = self._contribution[found[can]] - duals.value[blocks].min() - priced
            bound[can] = np.maximum(bound[can], level)
        is_gain = bound > 0.0
        found, bound = found[is_gain], bound[is_gain]
        order = np.argsort(-bound, kind="stable")
        return self._exact(duals, found[order], bound[order])

    def _chunks(self) -> list[IntArray]:
        size = max(1, _CHUNK_PAIRS // max(1, self._noise.size))
        every = np.arange(self.device.size)
        return [every[k : k + size] for k in range(0, every.size, size)]


def _lower_envelope(slope: FloatArray, start: FloatArray, at: FloatArray) -> FloatArray:
    """Return min over the lines of start + slope * b at each of the points b, which are sorted."""
    order = np.lexsort((start, slope))[::-1]  # steepest first: small b; of equal slopes the lowest comes last
    corners: list[float] = []
    lines: list[int] = []
    for line in order.tolist():
        while lines:
            steeper = slope[lines[-1]] - slope[line]
            corner = (start[line] - start[lines[-1]]) / steeper if steeper > 0.0 else -np.inf
            if corner > (corners[-1] if corners else 0.0):
                corners.append(corner)
                break
            lines.pop()
            if corners:
                corners.pop()
        lines.append(line)
    edges = np.concatenate(([0], at.searchsorted(corners), [at.size]))
    counts = np.diff(edges)
    return np.repeat(slope[lines], counts) * at + np.repeat(start[lines], counts)
