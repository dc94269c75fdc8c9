"""What each block is worth in a matching: the dual prices that prove a matching best.

Let w[m, i] be the weight of device i on block m. Prices pi[m] >= 0 prove that a matching of value V is the
best one if V = sum of pi + sum over devices of v[i], where v[i] = max(0, max over m of w[m, i] - pi[m]) is
what a device makes at these prices: no matching is worth more than that sum. So a device outside the table
that makes nothing, v[i] = 0, could not improve the matching, and whatever the others make bounds what they
could add.
"""

from __future__ import annotations

import numpy as np

from fedwave.allocation.assignment import Matching
from fedwave.allocation.pairs import PairTable
from fedwave.units import FloatArray


def block_prices(table: PairTable, matching: Matching) -> FloatArray:
    """Return the largest prices that prove a best matching of the table, one for each of its rows.

    At the largest prices the fewest outsiders make a profit. A matched device must not do better elsewhere:
    pi[m] <= w[m, i] - w[m', i] + pi[m'] for the device i on m, and pi[m] <= w[m, i]. The largest solution is
    a shortest path to an empty block or to profit 0, found by repeated relaxation.
    """
    row, column = matching.row, matching.column
    prices = np.zeros(len(table.block))
    if row.size == 0:
        return prices
    contribution = table.contributions_at(row, column)
    with np.errstate(over="ignore", invalid="ignore"):
        weight = contribution[:, None] - table.unit_cost[:, column].T * matching.energy_factor  # (matched, M)
    weight[matching.smallest_cap > table.snr_cap[:, column].T] = -np.inf
    own = weight[np.arange(row.size), row]
    step = own[:, None] - weight
    prices[row] = own
    changed = np.arange(prices.size)
    for _ in range(2 * prices.size):  # paths are no longer than M; rounding must not make it endless
        reached = (step[:, changed] + prices[changed]).min(axis=1)
        is_lower = reached < prices[row]
        if not is_lower.any():
            break
        changed = row[is_lower]
        prices[changed] = reached[is_lower]
    return np.maximum(prices, 0.0)
