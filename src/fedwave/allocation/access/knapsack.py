"""How many blocks each device gets: the multiple-choice knapsack, exactly, by prices and a dynamic programme.

A price pi per block bounds every choice by sum of max(0, max over k of w[i, k] - pi k) + pi M. An option that
lies further below its device's best than that bound lies above a choice already found is in no better choice.
What is left is small, and its dynamic programme, in O(options x M), is exact.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedwave.allocation.access.groups import Groups
from fedwave.units import FloatArray, IntArray

_PRICE_STEPS = 40


@dataclass(frozen=True, kw_only=True, eq=False)
class Knapsack:
    """The best choice, and a price per block that bounds all others."""

    value: float
    counts: IntArray  # blocks of each device
    price: float
    num_blocks: int

    def bound_with_each(self, worth: FloatArray, offers: Groups | None = None) -> FloatArray:
        """Return what no choice that has an option is worth more than, for every option of the same table.

        Its rows are devices, or offers of devices, of which one is taken.
        """
        reduced = worth - self.price * np.arange(1, worth.shape[1] + 1)
        best = np.maximum(reduced.max(axis=1, initial=-np.inf), 0.0)
        own = best
        if offers is not None:
            best = offers.best(best)
            own = best[offers.number]
        total = float(best.sum()) + self.price * self.num_blocks
        return np.asarray(reduced + (total - own)[:, None])


def best_counts(worth: FloatArray, num_blocks: int, max_uploads: int | None = None) -> Knapsack:
    """Return the largest sum of worths with at most M blocks, and the number of blocks of each device.

    ``worth[i, k - 1]`` is what device i is worth on k blocks, minus infinity where it cannot be; on none it
    is 0.
    """
    counts = np.zeros(worth.shape[0], dtype=np.int64)
    if max_uploads is not None and max_uploads >= num_blocks:
        max_uploads = None
    rows = np.flatnonzero((worth > 0.0).any(axis=1))
    if rows.size == 0 or num_blocks == 0 or max_uploads == 0:
        return Knapsack(value=0.0, counts=counts, price=0.0, num_blocks=num_blocks)
    table = worth[rows]
    price, own = _price(table, num_blocks)
    if max_uploads is not None:
        value, found = _with_few(table, num_blocks, max_uploads)
    else:
        value, found = _without_limit(table, num_blocks, price, own)
    counts[rows] = found
    return Knapsack(value=value, counts=counts, price=price, num_blocks=num_blocks)


def _without_limit(table: FloatArray, num_blocks: int, price: float, own: IntArray) -> tuple[float, IntArray]:
    """Return the best choice: what the price leaves open is decided by a dynamic programme."""
    blocks = np.arange(1, table.shape[1] + 1)
    value, found = _fill(table, own, num_blocks)
    reduced = table - price * blocks
    best = np.maximum(reduced.max(axis=1), 0.0)
    slack = float(best.sum()) + price * num_blocks - value
    slack += 1e-12 * (abs(value) + price * num_blocks)
    may_be = (best[:, None] - reduced <= slack) & (table > 0.0)
    may_be_none = best <= slack
    single = may_be.sum(axis=1) + may_be_none
    loose = np.flatnonzero(single > 1)
    if loose.size == 0:
        return value, found
    settled = np.where((single == 1) & ~may_be_none, may_be.argmax(axis=1) + 1, 0)
    left = num_blocks - int(settled.sum())
    if left >= 0:
        base = float(table[settled > 0, settled[settled > 0] - 1].sum())
        better, choice = _programme(table[loose], may_be[loose], may_be_none[loose], left)
        if base + better > value:
            value, found = base + better, settled
            found[loose] = choice
    return value, found


def _first_price(table: FloatArray, num_blocks: int) -> float:
    """Return a price at which M blocks are wanted if nobody's next block is worth more than the last one."""
    extra = np.empty(table.shape)
    extra[:, 0] = table[:, 0]
    with np.errstate(invalid="ignore"):  # where neither number of blocks is possible
        np.subtract(table[:, 1:], table[:, :-1], out=extra[:, 1:])
    wanted = extra[extra > 0.0]
    if wanted.size <= num_blocks:
        return 0.0
    around = np.partition(wanted, [wanted.size - num_blocks - 1, wanted.size - num_blocks])
    price = 0.5 * float(around[wanted.size - num_blocks - 1] + around[wanted.size - num_blocks])
    return price if np.isfinite(price) else 0.0


def _price(table: FloatArray, num_blocks: int) -> tuple[float, IntArray]:
    """Return a price with a low bound, and what each device takes there: at most M blocks together."""
    blocks = np.arange(1, table.shape[1] + 1)
    rows = np.arange(table.shape[0])
    low, high = 0.0, float((table / blocks).max())
    low_slope: float | None = None
    low_bound = high_bound = 0.0
    own = np.zeros(table.shape[0], dtype=np.int64)
    high_slope, high_bound = float(num_blocks), high * num_blocks  # at this price nobody gains
    best_price, best_bound = high, high_bound
    price = min(_first_price(table, num_blocks), high)
    for _ in range(_PRICE_STEPS):
        reduced = table - price * blocks
        column = reduced.argmax(axis=1)
        gain = reduced[rows, column]
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
        if low_slope is None:
            price = 0.0
            continue
        if high - low <= 1e-12 * high:
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
