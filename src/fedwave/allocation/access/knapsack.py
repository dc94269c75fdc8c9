"""How many blocks each device gets: the multiple-choice knapsack, exactly, by prices and a dynamic programme.

A price pi per block bounds every choice by sum of max(0, max over k of w[i, k] - pi k) + pi M. An option that
lies further below its device's best than that bound lies above a choice already found is in no better choice.
What is left is small, and its dynamic programme, in O(options x M), is exact.
"""

from __future__ import annotations

import numpy as np

from fedwave.units import FloatArray, IntArray

_PRICE_STEPS = 40


def best_counts(worth: FloatArray, num_blocks: int, max_uploads: int | None = None) -> tuple[float, IntArray]:
    """Return the largest sum of worths with at most M blocks, and the number of blocks of each device.

    ``worth[i, k - 1]`` is what device i is worth on k blocks, minus infinity where it cannot be; on none it
    is 0.
    """
    counts = np.zeros(worth.shape[0], dtype=np.int64)
    if max_uploads is not None and max_uploads >= num_blocks:
        max_uploads = None
    rows = np.flatnonzero((worth > 0.0).any(axis=1))
    if rows.size == 0 or num_blocks == 0 or max_uploads == 0:
        return 0.0, counts
    table = worth[rows]
    if max_uploads is not None:
        value, found = _with_few(table, num_blocks, max_uploads)
        counts[rows] = found
        return value, counts
    price, own = _price(table, num_blocks)
    blocks = np.arange(1, table.shape[1] + 1)
    value, found = _fill(table, own, num_blocks)
    reduced = table - price * blocks
    best = np.maximum(reduced.max(axis=1), 0.0)
    slack = float(best.sum()) + price * num_blocks - value
    slack += 1e-12 * (abs(value) + price * num_blocks)
    may_be = (best[:, None] - reduced <= slack) & (table > 0.0)
    may_be_none = best <= slack
    single = may_be.sum(axis=1) + may_be_none
    settled = np.where((single == 1) & ~may_be_none, may_be.argmax(axis=1) + 1, 0)
    left = num_blocks - int(settled.sum())
    loose = np.flatnonzero(single > 1)
    if left >= 0 and loose.size:
        base = float(table[settled > 0, settled[settled > 0] - 1].sum())
        better, choice = _programme(table[loose], may_be[loose], may_be_none[loose], left)
        if base + better > value:
            value, found = base + better, settled
            found[loose] = choice
    counts[rows] = found
    return value, counts


def _price(table: FloatArray, num_blocks: int) -> tuple[float, IntArray]:
    """Return a price with a low bound, and what each device takes there: at most M blocks together."""
    blocks = np.arange(1, table.shape[1] + 1)
    low, high = 0.0, float((table / blocks).max())
    low_slope: float | None = None
    low_bound = high_bound = 0.0
    own = np.zeros(table.shape[0], dtype=np.int64)
    high_slope, high_bound = float(num_blocks), high * num_blocks  # at this price nobody gains
    best_price, best_bound = high, high_bound
    price = 0.0
    for _ in range(_PRICE_STEPS):
        reduced = table - price * blocks
        column = reduced.argmax(axis=1)
        gain = reduced[np.arange(table.shape[0]), column]
        takes = np.where(gain > 0.0, column + 1, 0)
        bound = float(np.maximum(gain, 0.0).sum()) + price * num_blocks
        slope = float(num_blocks - takes.sum())
        if bound < best_bound:
            best_price, best_bound = price, bound
        if slope >= 0.0:
            own, high, high_slope, high_bound = takes, price, slope, bound
            if slope == 0.0 or price == 0.0:
                return price, own
        else:
            low, low_slope, low_bound = price, slope, bound
        if low_slope is None or high - low <= 1e-12 * high:
            break
        meet = (low_bound - high_bound + high_slope * high - low_slope * low) / (high_slope - low_slope)
        lowest = low_bound + low_slope * (meet - low)
        if best_bound - lowest <= 1e-12 * abs(best_bound) or not low < meet < high:
            break
        price = meet
    return best_price, own


def _fill(table: FloatArray, own: IntArray, num_blocks: int) -> tuple[float, IntArray]:
    """Return a choice from what devices take at a price; blocks left over go where they bring most."""
    found = own.copy()
    rows = np.arange(table.shape[0])
    left = num_blocks - int(found.sum())
    value = float(table[found > 0, found[found > 0] - 1].sum())
    while left > 0:
        now = np.where(found > 0, table[rows, found - 1], 0.0)
        width = np.arange(1, table.shape[1] + 1)[None, :] - found[:, None]
        with np.errstate(invalid="ignore"):
            gain = np.where(
                (width > 0) & (width <= left), (table - now[:, None]) / np.maximum(width, 1), -np.inf
            )
        place = int(gain.argmax())
        i, k = divmod(place, table.shape[1])
        if not gain[i, k] > 0.0:
            break
        value += float(table[i, k] - now[i])
        left -= k + 1 - int(found[i])
        found[i] = k + 1
    return value, found


def _programme(
    table: FloatArray, may_be: FloatArray, may_be_none: FloatArray, num_blocks: int
) -> tuple[float, IntArray]:
    """Return the best choice among the options left; minus infinity if there is none."""
    best = np.zeros(num_blocks + 1)
    choices = np.zeros((table.shape[0], num_blocks + 1), dtype=np.int64)
    for i in range(table.shape[0]):
        after = best.copy() if may_be_none[i] else np.full(num_blocks + 1, -np.inf)
        for column in np.flatnonzero(may_be[i]):
            k = int(column) + 1
            if k > num_blocks:
                break
            tried = best[: num_blocks + 1 - k] + table[i, column]
            better = tried > after[k:]
            after[k:][better] = tried[better]
            choices[i, k:][better] = k
        best = after
    counts = np.zeros(table.shape[0], dtype=np.int64)
    left = int(best.argmax())
    value = float(best[left])
    if value == -np.inf:
        return value, counts
    for i in range(table.shape[0] - 1, -1, -1):
        counts[i] = choices[i, left]
        left -= int(counts[i])
    return value, counts


def _with_few(table: FloatArray, num_blocks: int, max_uploads: int) -> tuple[float, IntArray]:
    """Return the best choice with a limit on the number of devices: one more dimension."""
    n = table.shape[0]
    best = np.zeros((max_uploads + 1, num_blocks + 1))
    choices = np.zeros((n, max_uploads + 1, num_blocks + 1), dtype=np.int16)
    for i in range(n):
        after = best.copy()
        for column in np.flatnonzero(table[i] > 0.0):
            k = int(column) + 1
            if k > num_blocks:
                break
            tried = best[:-1, : num_blocks + 1 - k] + table[i, column]
            better = tried > after[1:, k:]
            after[1:, k:][better] = tried[better]
            choices[i, 1:, k:][better] = k
        best = after
    counts = np.zeros(n, dtype=np.int64)
    used, left = divmod(int(best.argmax()), num_blocks + 1)
    value = float(best[used, left])
    for i in range(n - 1, -1, -1):
        counts[i] = choices[i, used, left]
        left -= int(counts[i])
        used -= int(counts[i] > 0)
    return value, counts
