"""Column generation: the search for crowds of which nobody can be ruled out beforehand.

A larger contribution may go with a weaker channel in a whole fleet; then every device is the best choice at
some delay. But a search meets few delays closely. So its table starts from a sample of columns, and all other
devices are priced by the duals of its blocks (block_duals.py, column_pricing.py) when it thinks that it is
done. Nodes whose bound stands are proven for the whole fleet. The others get the devices that would raise
their bound, are matched again, and the search goes on. Every reopened node adds a device, so this ends; the
bound it returns is one for all devices.
"""

from __future__ import annotations

import bisect
import math
from dataclasses import replace

import numpy as np

from fedwave.allocation.optimal.block_duals import block_duals, warm_started_matching
from fedwave.allocation.optimal.column_pricing import BlockDuals, ColumnPricing, Pricing, Profits
from fedwave.allocation.optimal.search import ROUNDING, BranchAndBound, Lines, Node
from fedwave.allocation.problem import AllocationProblem
from fedwave.allocation.uploads.assignment import Matching, best_matching
from fedwave.allocation.uploads.pairs import PairTable, pair_table
from fedwave.allocation.uploads.power import energy_factor
from fedwave.allocation.uploads.snr_range import largest_snr
from fedwave.units import FloatArray, IntArray

_NUM_PROBES = 3  # SNRs at which the first devices are found
_NUM_ROUNDS = 12  # of taking devices in before the search starts; four or five in practice
_SETTLED = 1e-7  # share of the value that devices outside may still add at the incumbent's SNR then


class ColumnGeneration(BranchAndBound):
    """Branch and bound over the devices given, of which only those needed enter its table."""

    _per_block = 2  # devices taken in for each block, besides the M most profitable ones

    def __init__(self, problem: AllocationProblem, device: IntArray) -> None:
        step = max(1, device.size // (2 * problem.num_blocks))
        super().__init__(problem, pair_table(problem, device[None, ::step]))
        self._problem = problem
        self._pricing = self._new_pricing(device)
        self._pricing.take_inside(device[::step])
        self._duals: list[tuple[float, int, FloatArray]] = []  # by energy factor
        self._duals_of: dict[int, FloatArray] = {}
        self._first_table = self._table

    def _new_pricing(self, device: IntArray) -> Pricing:
        return ColumnPricing(self._problem, device)

    def _rounding(self, root: Node, compute_cost: float) -> float:
        extra = compute_cost if self._delay.hurry is not None else 0.0
        return ROUNDING * (self._pricing.largest_contribution + extra)

    def _root(self) -> Node | None:
        highest = largest_snr(self._problem, self._pricing.device, self._pricing.best_gains())
        low = self._lowest_snr(self._pricing.largest_contribution)
        if low > highest:
            return None
        self._settle(low, highest)
        lines = self._touching(self._snr or math.sqrt(low) * math.sqrt(highest))
        at_low, at_high = (self._match(lines, snr, low) for snr in (low, highest))
        return self._node(low, highest, low, lines, at_low, at_high)

    def _settle(self, low: float, high: float) -> None:
        """Find good devices and an incumbent: at some SNRs, then blocks and SNR in turns, as IVES does."""
        first, last = math.log(low), math.log(high)
        steps = [(step + 0.5) / _NUM_PROBES for step in range(_NUM_PROBES)]
        probes = [math.exp(first + (last - first) * step) for step in steps]
        for _ in range(_NUM_ROUNDS):
            found = [self._match(self._touching(snr), snr, snr) for snr in probes]
            duals = [self._duals_for(matching, snr) for matching, snr in zip(found, probes, strict=True)]
            profits = self._pricing.profits(duals)
            if sum(one.total for one in profits) <= _SETTLED * self._value:
                break
            self._take_in(profits)
            before = 0.0
            while self._value > before:
                before, snr = self._value, self._snr
                self._match(self._touching(snr), snr, snr)
            probes = [self._snr or probes[0]]

    def _touching(self, snr: float) -> Lines:
        return Lines(table=self._first_table, snr=snr)

    def _table_of(self, lines: Lines) -> PairTable:
        """Return the table as it is now: that of the lines may be smaller."""
        del lines
        return self._table

    def _match(self, lines: Lines, snr: float, smallest_cap: float) -> Matching:
        self._num_matchings += 1
        table = self._table_of(lines)
        factor = energy_factor(snr)
        if self._duals:
            found, duals = warm_started_matching(
                table, energy_factor=factor, smallest_cap=smallest_cap, duals=self._duals_near(factor)
            )
        else:
            found = best_matching(table, energy_factor=factor, smallest_cap=smallest_cap)
            duals = block_duals(table, found)
        bisect.insort(self._duals, (factor, self._num_matchings, duals))
        self._duals_of[id(found)] = duals
        self._offer(found)
        return found

    def _duals_near(self, factor: float) -> FloatArray:
        """Return duals for an energy factor, on the line between its known neighbours."""
        place = bisect.bisect(self._duals, (factor,))
        if place == 0 or place == len(self._duals):
            return self._duals[min(place, len(self._duals) - 1)][2]
        (low, _, at_low), (high, _, at_high) = self._duals[place - 1 : place + 1]
        share = (factor - low) / (high - low) if high > low else 0.0
        return at_low + share * (at_high - at_low)

    def _duals_for(self, matching: Matching, touching_snr: float) -> BlockDuals:
        duals = np.empty(self._table.block.size)
        duals[self._table.block] = self._duals_of[id(matching)]
        return BlockDuals(duals, matching.energy_factor, matching.smallest_cap, touching_snr)

    def _take_in(self, every: list[Profits]) -> None:
        """Add the most profitable devices of all, and those of each block, to the table."""
        chosen = [np.zeros(0, dtype=np.int64)]
        num_blocks = self._table.block.size
        for profits in every:
            order = np.argsort(-profits.profit, kind="stable")
            chosen.append(profits.device[order[:num_blocks]])
            by_block = order[np.argsort(profits.block[order], kind="stable")]
            block = profits.block[by_block]
            rank = np.arange(block.size) - np.searchsorted(block, block)
            chosen.append(profits.device[by_block[rank < self._per_block]])
        device = np.setdiff1d(np.concatenate(chosen), self._table.device[0])
        self._table = self._table.joined_by(pair_table(self._problem, device[None, :]))
        self._pricing.take_inside(device)
        self._duals.clear()  # of fewer devices, hence too low

    @property
    def whole_table(self) -> PairTable | None:
        """Return None: the table grows with the search."""
        return None

    def _shrunk(self, node: Node) -> Node:
        """Return the node itself: what is cut off would have to be proven, too."""
        return node

    def _reopen(self, rounding: float, *, may_go_on: bool) -> bool:
        """Price all nodes not yet proven; return whether some need devices from outside the table."""
        nodes = [*self._closed, *(entry[2] for entry in self._heap)]
        new = [node for node in nodes if not node.is_proven]
        ends = {id(end): (end, node.lines.snr) for node in new for end in (node.at_low, node.at_high)}
        found = self._pricing.profits([self._duals_for(*end) for end in ends.values()])
        profits = dict(zip(ends, found, strict=True))
        failed: list[Node] = []
        proven: list[Node] = []
        for node in nodes:
            if node.is_proven:
                proven.append(node)
                continue
            total = (profits[id(node.at_low)].total, profits[id(node.at_high)].total)
            bound = self._chord_bound(node.low, node.high, node.at_low, node.at_high, raised=total)[0]
            bound = max(bound, node.upper_bound)
            if may_go_on and bound > max(node.upper_bound, self._value) + rounding:
                failed.append(node)
            else:
                proven.append(replace(node, upper_bound=bound, is_proven=True))
        self._closed, self._heap = [], []
        for node in proven:
            self._sort_in(node)
        needed = {id(end): profits[id(end)] for node in failed for end in (node.at_low, node.at_high)}
        if needed:
            self._take_in(list(needed.values()))
        matched: dict[tuple[float, float], Matching] = {}
        for node in sorted(failed, key=lambda node: node.low):
            cap = node.smallest_cap
            for snr in (node.low, node.high):
                if (snr, cap) not in matched:
                    matched[snr, cap] = self._match(node.lines, snr, cap)
            at_low, at_high = matched[node.low, cap], matched[node.high, cap]
            self._sort_in(self._node(node.low, node.high, cap, node.lines, at_low, at_high))
        return bool(failed)
