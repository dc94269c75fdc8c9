"""Column generation where devices choose an SNR of their own, with packet errors, say.

Worths are curved then, and each node of the search stands on tangents that touch them at one SNR. A node is
priced when it is made, with the tangents of all devices outside the table at the same SNR
(curved_pricing.py): what they would make at both ends raises its chord, and so its bound holds for the whole
fleet from the start. A node whose bound owes more to devices outside than to its chord gets those devices and
is matched again before it is divided. So the search is never led astray by a table that lacks what a
neighbouring range of SNRs needs, and nodes that are ruled out are ruled out for good.
"""

from __future__ import annotations

from dataclasses import replace

from fedwave.allocation.optimal.column_generation import ColumnGeneration
from fedwave.allocation.optimal.column_pricing import Pricing, Profits
from fedwave.allocation.optimal.curved_pricing import CurvedPricing
from fedwave.allocation.optimal.search import Lines, Node
from fedwave.allocation.problem import AllocationProblem
from fedwave.allocation.uploads.assignment import Matching
from fedwave.allocation.uploads.pairs import PairTable
from fedwave.units import IntArray

_MOST_TANGENTS = 8  # tables kept; nodes that come one after the other often share theirs
_OWED = 0.5  # share of a gap that may be due to devices outside before a node is divided


class CurvedGeneration(ColumnGeneration):
    """Branch and bound over the devices given, each node priced when it is made."""

    _per_block = 4

    def __init__(self, problem: AllocationProblem, device: IntArray) -> None:
        super().__init__(problem, device)
        self._tangents: dict[float, PairTable] = {}  # of the table as it is, by the SNR where they touch
        self._priced: dict[int, tuple[Matching, Profits]] = {}
        self._width_of: dict[int, int] = {}  # how many devices a matching was made of

    def _new_pricing(self, device: IntArray) -> Pricing:
        return CurvedPricing(self._problem, device)

    def _table_of(self, lines: Lines) -> PairTable:
        """Return the tangents of the table as it is now; few are kept."""
        if lines.snr not in self._tangents:
            if len(self._tangents) == _MOST_TANGENTS:
                del self._tangents[next(iter(self._tangents))]
            self._tangents[lines.snr] = self._table.tangent(lines.snr)
        return self._tangents[lines.snr]

    def _match(self, lines: Lines, snr: float, smallest_cap: float) -> Matching:
        found = super()._match(lines, snr, smallest_cap)
        self._width_of[id(found)] = self._table.device.size
        return found

    def _take_in(self, every: list[Profits]) -> None:
        super()._take_in(every)
        self._tangents.clear()

    def _profits_at(self, end: Matching, touching_snr: float) -> Profits:
        """Return what devices outside the table would make at the duals of a matching.

        Outside means outside the table that it was made of. So it is priced before the table grows, and what
        was found then stays true.
        """
        if id(end) not in self._priced:
            assert self._width_of[id(end)] == self._table.device.size
            (profits,) = self._pricing.profits([self._duals_for(end, touching_snr)])
            self._priced[id(end)] = (end, profits)  # the matching lives on, so no other one gets its id
        return self._priced[id(end)][1]

    def _node(
        self, low: float, high: float, cap: float, lines: Lines, at_low: Matching, at_high: Matching
    ) -> Node:
        """Return the node with a bound that holds for all devices."""
        low_total, high_total = (self._profits_at(end, lines.snr).total for end in (at_low, at_high))
        bound, snr = self._chord_bound(low, high, at_low, at_high, raised=(low_total, high_total))
        return Node(low, high, cap, lines, at_low, at_high, bound, snr, is_proven=True)

    def _branch(self, node: Node) -> list[Node]:
        """Return nodes that cover this one, or itself with more devices if it lacks some."""
        return [self._completed(node)] if self._lacks_devices(node) else super()._branch(node)

    def _at_point(self, node: Node) -> Node:
        found = super()._at_point(node)
        while self._lacks_devices(found):
            found = replace(self._completed(found), is_point=True)
        return found

    def _lacks_devices(self, node: Node) -> bool:
        """Return whether a node's bound owes most of what it is above the incumbent to devices outside."""
        gap = node.upper_bound - self._value
        alone = self._chord_bound(node.low, node.high, node.at_low, node.at_high)[0]
        return gap > 0.0 and node.upper_bound - alone > _OWED * gap

    def _completed(self, node: Node) -> Node:
        """Return the node, matched again with devices that would make a profit at its ends."""
        lines, cap = node.lines, node.smallest_cap
        self._take_in([self._profits_at(end, lines.snr) for end in (node.at_low, node.at_high)])
        at_low, at_high = (self._match(lines, snr, cap) for snr in (node.low, node.high))
        return self._node(node.low, node.high, cap, lines, at_low, at_high)
