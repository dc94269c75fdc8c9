"""The blocks' dual prices, which prove a matching best, and a matching found from those of a neighbour.

Let w[m, i] be the weight of device i on block m. Duals pi[m] >= 0 prove that a matching of value V is the
best one if V = sum of pi + sum over devices of v[i], where v[i] = max(0, max over m of w[m, i] - pi[m]) is
what a device makes at these prices: no matching is worth more than that sum. So a device outside the table
that makes nothing, v[i] = 0, could not improve the matching, and whatever the others make bounds what they
could add.

For a warm start the weights w[m, i] - pi[m] - v[i] are matched: all are at most 0, and 0 where a block suits
a device best. Taking pi off changes nothing, as each block is matched once; taking v off changes nothing if
each device is matched once, too, so devices that are left over get rows of weight 0. That makes a square
matrix in which almost every row finds its partner at the first look, where the plain one takes long detours
if all blocks want the same devices. Only the most profitable devices take part. The duals of what comes out
tell whether another one was needed.
"""

from __future__ import annotations

import numpy as np

from fedwave.allocation.uploads.assignment import Matching, assign_blocks, linear_sum_assignment, matching_of
from fedwave.allocation.uploads.pairs import PairTable
from fedwave.units import FloatArray, IntArray

_CROWD = 1.1  # devices per block that make a profit at duals which are worth starting from


def block_duals(table: PairTable, matching: Matching) -> FloatArray:
    """Return the largest duals that prove a best matching of the table, one for each of its rows.

    At the largest duals the fewest columns outside make a profit. A matched device must not do better
    elsewhere: pi[m] <= w[m, i] - w[m', i] + pi[m'] for the device i on m, and pi[m] <= w[m, i]. The largest
    solution is a shortest path to an empty block or to profit 0, found by repeated relaxation.
    """
    row, column = matching.row, matching.column
    duals = np.zeros(len(table.block))
    if row.size == 0:
        return duals
    contribution = table.contribution[:, column].T  # (matched, 1), or of a tangent (matched, M)
    with np.errstate(over="ignore", invalid="ignore"):
        weight = contribution - table.unit_cost[:, column].T * matching.energy_factor  # (matched, M)
    weight[matching.smallest_cap > table.snr_cap[:, column].T] = -np.inf
    own = weight[np.arange(row.size), row]
    step = own[:, None] - weight
    duals[row] = own
    changed = np.arange(duals.size)
    for _ in range(2 * duals.size):  # paths are no longer than M; rounding must not make it endless
        reached = (step[:, changed] + duals[changed]).min(axis=1)
        is_lower = reached < duals[row]
        if not is_lower.any():
            break
        changed = row[is_lower]
        duals[changed] = reached[is_lower]
    return np.maximum(duals, 0.0)


def warm_started_matching(
    table: PairTable, *, energy_factor: float, smallest_cap: float, duals: FloatArray
) -> tuple[Matching, FloatArray]:
    """Return what ``best_matching`` does, and its duals, from duals of the table's rows that may suit."""
    weight = table.weights(energy_factor, smallest_cap)
    profit = (weight - duals[:, None]).max(axis=0)
    num_blocks, width = weight.shape
    count = min(width, num_blocks + max(num_blocks // 2, 16))
    is_in = np.zeros(width, dtype=bool)
    is_in[np.argpartition(-profit, count - 1)[:count]] = True
    while True:
        kept = np.flatnonzero(is_in)
        row, column = _assign(weight[:, kept], duals)
        found = matching_of(table, row, kept[column], energy_factor=energy_factor, smallest_cap=smallest_cap)
        duals = block_duals(table, found)
        profit = (weight - duals[:, None]).max(axis=0)
        profit[is_in] = 0.0
        missing = np.flatnonzero(profit > 1e-13 * duals.max())
        if missing.size == 0:
            return found, duals
        is_in[missing[np.argsort(-profit[missing], kind="stable")[:num_blocks]]] = True


def _assign(weight: FloatArray, duals: FloatArray) -> tuple[IntArray, IntArray]:
    """Return rows and columns of the matching with the largest total weight; weights <= 0 are left out."""
    num_blocks, width = weight.shape
    profit = np.maximum((weight - duals[:, None]).max(axis=0), 0.0)
    if np.count_nonzero(profit) > _CROWD * num_blocks:  # the duals are far too low, and no help
        return assign_blocks(weight)
    size = max(num_blocks, width)
    cost = np.zeros((size, size))
    cost[:num_blocks, :width] = -np.maximum(weight, 0.0)
    cost[:num_blocks] += duals[:, None]
    cost[:, :width] += profit
    row, column = linear_sum_assignment(cost)
    row, column = row[:num_blocks], column[:num_blocks]
    is_real = column < width
    row, column = row[is_real], column[is_real]
    is_gain = weight[row, column] > 0.0
    return row[is_gain], column[is_gain]
