"""Column pricing where devices choose an SNR of their own, so that worths are no straight lines in e.

A node of the search stands on tangents that touch all worths at one SNR: straight lines again. So a device
outside the table is held against the duals with its own tangents at that SNR, and who makes nothing at either
end of a node cannot improve on the node's bound anywhere in it. But a tangent needs the pair's favourite SNR,
and to find it for all pairs takes the time and memory that column generation is to save. Two bounds avoid it:

- With one gain per device, a group of similar devices has a stand-in that is at least as good as all of them
  (stand_ins.py). What it makes bounds what each of them makes. Large groups come first, small ones within
  those that may make a profit, and then the devices themselves.
- With gains h[i, m], a device is worth no more on a block than on the one with its best gain over noise among
  blocks of similar noise: at each SNR that takes no more power and energy, and its cap is no lower. So what
  that one pair is worth, less the least dual of those blocks, bounds what the device makes on them.

Who passes is looked at block by block, and what was found out about it is kept for the next time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from fedwave.allocation.optimal.column_pricing import BlockDuals, Profits
from fedwave.allocation.optimal.stand_ins import near_together, stand_ins
from fedwave.allocation.problem import AllocationProblem
from fedwave.allocation.uploads.pairs import PairTable, pair_table, pairs_on
from fedwave.units import FloatArray, IntArray

_STAND_IN_PAIRS = 800_000  # at most, in the smallest groups
_LARGER = 16  # small groups in a large one
_CLASSES = 8  # of blocks with similar noise
_CHUNK_PAIRS = 100_000  # pairs looked at at a time
_MOST_KEPT = 1_500_000  # pairs kept from one pricing to the next
_ENOUGH = 4  # devices found for each block; then the others need not be looked at


class CurvedPricing:
    """All devices that may upload; those taken ``inside`` are no longer looked at."""

    def __init__(self, problem: AllocationProblem, device: IntArray) -> None:
        self._problem = problem
        self._classes: list[IntArray] = []
        self._levels: list[tuple[int, PairTable]] = []  # stand-ins, each for so many devices
        if problem.is_frequency_selective:
            quietest_first = np.argsort(problem.block_noise_w, kind="stable")
            self._classes = np.array_split(quietest_first, min(_CLASSES, problem.num_blocks))
            self._best = _in_chunks(self._best_pairs, device, len(self._classes))
        else:
            size = 1
            while size * _STAND_IN_PAIRS < device.size * problem.num_blocks:
                size *= 2
            device = near_together(problem, device, size)
            self._levels = [(some, self._stand_ins(device, some)) for some in (_LARGER * size, size)]
        self.device = device
        self._is_outside = np.ones(device.size, dtype=bool)
        self._kept: PairTable | None = None  # pairs of devices that were looked at, on all blocks
        self._place = np.full(device.size, -1)  # column of each row in what is kept
        contribution = problem.contribution[device]
        self.largest_contribution = float(np.sort(contribution)[-problem.num_blocks :].sum())

    def _stand_ins(self, device: IntArray, size: int) -> PairTable:
        """Return the pairs of a stand-in for each run of devices, a column each."""
        better, some = stand_ins(self._problem, device, size)
        return _in_chunks(lambda few: pair_table(better, few[None, :]), some, better.num_blocks)

    def _best_pairs(self, device: IntArray) -> PairTable:
        """Return these devices, each on the block of each class with its best gain over noise."""
        problem = self._problem
        block = np.empty((len(self._classes), device.size), dtype=np.int64)
        for row, blocks in zip(block, self._classes, strict=True):
            ratio = problem.channel_gain[device[:, None], blocks] / problem.block_noise_w[blocks]
            row[:] = blocks[ratio.argmax(axis=1)]
        return pairs_on(problem, device[None, :], block)

    def best_gains(self) -> FloatArray:
        """Return each device's largest gain over noise."""
        problem = self._problem
        if not problem.is_frequency_selective:
            return np.asarray(problem.channel_gain[self.device] / problem.block_noise_w.min())
        best = np.zeros(self.device.size)
        for block, noise_w in enumerate(problem.block_noise_w):
            np.maximum(best, problem.channel_gain[self.device, block] / noise_w, out=best)
        return best

    def take_inside(self, device: IntArray) -> None:
        """Leave these devices out from now on."""
        self._is_outside &= ~np.isin(self.device, device)

    def profits(self, every: Sequence[BlockDuals]) -> list[Profits]:
        """Return who would make a profit at each of the duals given."""
        return [self._profits(duals) for duals in every]

    def _profits(self, duals: BlockDuals) -> Profits:
        found, bound = self._by_classes(duals) if self._classes else self._by_groups(duals)
        is_outside = self._is_outside[found]
        return self._exact(duals, found[is_outside], bound[is_outside])

    def _by_groups(self, duals: BlockDuals) -> tuple[IntArray, FloatArray]:
        """Return the rows whose stand-ins make a profit, and how much.

        The best group of each block comes first, then the one with the largest profit: if not all are looked
        at, those are needed most.
        """
        above, largest = self._levels[0]
        groups, profit = np.arange(largest.device.size), np.zeros((duals.value.size, 0))
        for size, table in self._levels:
            groups, _ = _members(groups, above // size, table.device.size)
            profit = _profit(table.columns(groups).tangent(duals.touching_snr), duals)
            is_gain = profit.max(axis=0) > 0.0
            groups, profit, above = groups[is_gain], profit[:, is_gain], size
        if groups.size == 0:
            return groups, np.zeros(0)
        bound = profit.max(axis=0)
        is_best = np.zeros(groups.size, dtype=bool)
        is_best[profit.argmax(axis=1)] = True
        order = np.lexsort((-bound, ~is_best))
        rows, group = _members(groups[order], above, self.device.size)
        return rows, bound[order][group]

    def _by_classes(self, duals: BlockDuals) -> tuple[IntArray, FloatArray]:
        """Return the rows that make a profit on the best block of some class, and how much, largest first."""
        least = np.array([duals.value[blocks].min() for blocks in self._classes])
        bound = _profit(self._best.tangent(duals.touching_snr), duals, least).max(axis=0)
        found = np.flatnonzero(bound > 0.0)
        found = found[np.argsort(-bound[found], kind="stable")]
        return found, bound[found]

    def _exact(self, duals: BlockDuals, found: IntArray, bound: FloatArray) -> Profits:
        """Return the profits of these rows, looked at on every block; if enough are found, not of all."""
        num_blocks = self._problem.num_blocks
        nobody = np.zeros(0, dtype=np.int64)
        devices, blocks, profits, each = [nobody], [nobody], [np.zeros(0)], [np.zeros(0)]
        num_found = 0
        size = max(1, _CHUNK_PAIRS // num_blocks)
        for start in range(0, found.size, size):
            if num_found > _ENOUGH * num_blocks:
                each.append(bound[start:])
                break
            rows = found[start : start + size]
            table = self._pairs_of(rows)
            profit = _profit(table.tangent(duals.touching_snr), duals)
            # Each device on its best block, and the best device of each block.
            row = np.concatenate([profit.argmax(axis=0), np.arange(num_blocks)])
            column = np.concatenate([np.arange(rows.size), profit.argmax(axis=1)])
            best = profit[row, column]
            each.append(best[: rows.size][best[: rows.size] > 0.0])
            num_found += each[-1].size
            is_gain = best > 0.0
            devices.append(self.device[rows[column[is_gain]]])
            blocks.append(table.block[row[is_gain]])
            profits.append(best[is_gain])
        # No matching has more than M devices.
        total = float(np.sort(np.concatenate(each))[-num_blocks:].sum())
        return Profits(np.concatenate(devices), np.concatenate(blocks), np.concatenate(profits), total)

    def _pairs_of(self, rows: IntArray) -> PairTable:
        """Return the pairs of these rows on all blocks, as they were kept where they are known."""
        if (self._num_kept + rows.size) * self._problem.num_blocks > _MOST_KEPT:
            self._forget()
        new = rows[self._place[rows] < 0]
        if new.size:
            self._place[new] = self._num_kept + np.arange(new.size)
            table = pair_table(self._problem, self.device[None, new]).columns(np.arange(new.size))
            self._kept = table if self._kept is None else self._kept.joined_by(table)
        assert self._kept is not None
        return self._kept.columns(self._place[rows])

    @property
    def _num_kept(self) -> int:
        return 0 if self._kept is None else self._kept.device.size

    def _forget(self) -> None:
        self._kept = None
        self._place.fill(-1)


def _profit(lines: PairTable, duals: BlockDuals, price: FloatArray | None = None) -> FloatArray:
    """Return what each pair makes at the price of its row, by default its dual; less than 0 if it cannot."""
    price = duals.value[lines.block] if price is None else price
    with np.errstate(over="ignore", invalid="ignore"):
        profit = lines.contribution - lines.unit_cost * duals.energy_factor - price[:, None]
    np.copyto(profit, -np.inf, where=lines.snr_cap < duals.smallest_cap)
    return np.asarray(profit)


def _members(groups: IntArray, count: int, end: int) -> tuple[IntArray, IntArray]:
    """Return the members of groups of ``count`` in a row, none from the end on, and where each group is."""
    members = (groups[:, None] * count + np.arange(count)).ravel()
    is_real = members < end
    return members[is_real], np.repeat(np.arange(groups.size), count)[is_real]


def _in_chunks(pairs: Callable[[IntArray], PairTable], device: IntArray, num_rows: int) -> PairTable:
    """Return the pairs of these devices, made a few at a time, each device in one piece in memory."""
    size = max(1, _CHUNK_PAIRS // num_rows)
    parts = [pairs(device[start : start + size]) for start in range(0, max(device.size, 1), size)]
    parts = [part.columns(np.arange(part.device.size)) for part in parts]
    return parts[0].joined_by(*parts[1:])
