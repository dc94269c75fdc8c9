"""A best matching found from the prices of a neighbour, among the few devices that matter there.

At prices pi[m] of the blocks a device makes v[i] = max(0, max over m of w[m, i] - pi[m]). With those taken
off, all weights w[m, i] - pi[m] - v[i] are at most 0, and 0 where a block suits a device best. Taking pi off
changes nothing, as each block is matched once; taking v off changes nothing if each device is matched once,
too, so devices that are left over get rows of weight 0. That makes a square matrix in which almost every row
finds its partner at the first look, where the plain one takes long detours if all blocks want the same
devices.

Only the most profitable devices take part. The prices of what comes out tell whether another one was needed.
"""

from __future__ import annotations

import numpy as np

from fedwave.allocation.assignment import Matching, assign_blocks, matching_of
from fedwave.allocation.linear_assignment import linear_sum_assignment
from fedwave.allocation.optimal.prices import block_prices
from fedwave.allocation.pairs import PairTable
from fedwave.units import FloatArray, IntArray

_CROWD = 1.1  # devices per block that make a profit at prices which are worth starting from


def warm_matching(
    table: PairTable, *, energy_factor: float, smallest_cap: float, prices: FloatArray
) -> tuple[Matching, FloatArray]:
    """Return what ``best_matching`` does, and its prices, from prices of the table's rows that may suit."""
    weight = table.weights(energy_factor, smallest_cap)
    profit = (weight - prices[:, None]).max(axis=0)
    num_blocks, width = weight.shape
    count = min(width, num_blocks + max(num_blocks // 2, 16))
    is_in = np.zeros(width, dtype=bool)
    is_in[np.argpartition(-profit, count - 1)[:count]] = True
    while True:
        kept = np.flatnonzero(is_in)
        row, column = _assign(weight[:, kept], prices)
        found = matching_of(table, row, kept[column], energy_factor=energy_factor, smallest_cap=smallest_cap)
        prices = block_prices(table, found)
        profit = (weight - prices[:, None]).max(axis=0)
        profit[is_in] = 0.0
        missing = np.flatnonzero(profit > 1e-13 * prices.max())
        if missing.size == 0:
            return found, prices
        is_in[missing[np.argsort(-profit[missing], kind="stable")[:num_blocks]]] = True


def _assign(weight: FloatArray, prices: FloatArray) -> tuple[IntArray, IntArray]:
    """Return rows and columns of the matching with the largest total weight; weights <= 0 are left out."""
    num_blocks, width = weight.shape
    profit = np.maximum((weight - prices[:, None]).max(axis=0), 0.0)
    if np.count_nonzero(profit) > _CROWD * num_blocks:  # the prices are far too low, and no help
        return assign_blocks(weight)
    size = max(num_blocks, width)
    cost = np.zeros((size, size))
    cost[:num_blocks, :width] = -np.maximum(weight, 0.0)
    cost[:num_blocks] += prices[:, None]
    cost[:, :width] += profit
    row, column = linear_sum_assignment(cost)
    row, column = row[:num_blocks], column[:num_blocks]
    is_real = column < width
    row, column = row[is_real], column[is_real]
    is_gain = weight[row, column] > 0.0
    return row[is_gain], column[is_gain]
