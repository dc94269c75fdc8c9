"""Which devices can be left out because enough others are at least as good in every respect.

If M others are at least as good as device i on a block, i is never needed there: at most M - 1 other
blocks are taken, so one of those M is free and can stand in for i at no loss. Ties are broken by index,
so that equal devices do not strike each other out. The exchange argument may be applied one device at a
time, each time moving up in a finite order, so *any* set of such devices may be removed together.
"""

from __future__ import annotations

import itertools
import math

import numpy as np

from fedwave.units import BoolArray, FloatArray, IntArray

_SMALL = 600  # below this many rows, the corners cost more than they save
_CHUNK = 512  # rows compared at a time with all rows kept so far
_MAX_COMPARISONS = 1_000_000_000  # about a second; then the rows not yet looked at stay
_GRID = 5  # steps of the corner grid along each criterion


def undominated(criteria: tuple[FloatArray, ...], depth: int) -> IntArray:
    """Return the rows with fewer than ``depth`` others at least as good in every criterion, sorted.

    Larger is better; ``criteria`` are arrays of equal length (n,). Exactly these rows are returned, unless
    there are so many that finding them takes ``_MAX_COMPARISONS``: then others stay, too, which costs time
    later but never the optimum.
    """
    alive = np.arange(criteria[0].shape[0])
    if alive.size > _SMALL:
        alive = _cut_below_corners(criteria, alive, depth)
    if alive.size > depth:
        alive = alive[_has_few_better(_ranks(tuple(values[alive] for values in criteria)), depth)]
    return alive


def _cut_below_corners(criteria: tuple[FloatArray, ...], alive: IntArray, depth: int) -> IntArray:
    """Return the rows left after removing those below a point that ``depth`` rows reach in every criterion.

    The points lie on a grid of trade-offs between the criteria. "Below" is strict in one criterion, so
    equal rows stay here.
    """
    values = [criterion[alive] for criterion in criteria]
    for shares in sorted(_simplex(len(criteria)), key=max):
        if alive.size <= max(_SMALL, 2 * depth):
            break
        corner = _corner(values, shares, depth)
        if corner is None:
            continue
        is_below = np.ones(alive.size, dtype=bool)
        is_equal = np.ones(alive.size, dtype=bool)
        for criterion, bound in zip(values, corner, strict=True):
            is_below &= criterion <= bound
            is_equal &= criterion == bound
        keep = ~is_below | is_equal
        if np.count_nonzero(keep) < 0.97 * alive.size:  # copying costs more than a few rows less are worth
            alive = alive[keep]
            values = [criterion[keep] for criterion in values]
    return alive


def _corner(values: list[FloatArray], shares: tuple[float, ...], depth: int) -> list[float] | None:
    """Return a point that ``depth`` rows reach; criterion k cuts off the fraction given by its share."""
    box = np.arange(values[0].size)
    corner = []
    left = 1.0
    for criterion, share in zip(values[:-1], shares[:-1], strict=True):
        goal = math.log(depth / box.size) * (share / left) if left > 0 else 0.0
        count = max(depth, min(box.size, math.ceil(box.size * math.exp(goal))))
        bound = _largest(criterion[box], count)
        corner.append(bound)
        box = box[criterion[box] >= bound]
        left -= share
        if box.size < depth:
            return None
    corner.append(_largest(values[-1][box], depth))
    return corner


def _largest(values: FloatArray, count: int) -> float:
    """Return the count-th largest value."""
    return float(np.partition(values, values.size - count)[values.size - count])


def _simplex(num_criteria: int) -> list[tuple[float, ...]]:
    """Return all ways to split 1 into ``num_criteria`` multiples of 1 / _GRID."""
    cuts = itertools.product(range(_GRID + 1), repeat=num_criteria - 1)
    return [(*(c / _GRID for c in cut), 1 - sum(cut) / _GRID) for cut in cuts if sum(cut) <= _GRID]


def _ranks(criteria: tuple[FloatArray, ...]) -> IntArray:
    """Return each criterion as distinct ranks, (k, n), the best first; ties go by the others, then by index.

    A row at least as good in every criterion comes first in each of these orders, so no dominance is
    lost, and of equal rows the earlier one dominates.
    """
    ranks = np.empty((len(criteria), criteria[0].size), dtype=np.int64)
    for k in range(len(criteria)):
        keys = [-criterion for criterion in (*criteria[k + 1 :], *criteria[:k])] + [-criteria[k]]
        ranks[k, np.lexsort(keys)] = np.arange(criteria[0].size, dtype=np.int64)
    return ranks


def _has_few_better(ranks: IntArray, depth: int) -> BoolArray:
    """Return which rows have fewer than ``depth`` rows before them in every rank.

    Rows are visited by the sum of their ranks, so those better than a row come before it. Comparing with
    the rows kept so far is enough: whoever is better than a removed row is better than all that row was
    better than.
    """
    order = np.argsort(ranks.sum(axis=0, dtype=np.int64), kind="stable")
    ranks = ranks[:, order]
    keep = np.ones(order.size, dtype=bool)
    kept = ranks[:, :0]
    num_comparisons = 0
    for start in range(0, order.size, _CHUNK):
        chunk = ranks[:, start : start + _CHUNK]
        rivals = np.concatenate([kept, chunk], axis=1)
        num_comparisons += rivals.shape[1] * chunk.shape[1]
        if num_comparisons > _MAX_COMPARISONS:
            break
        better = rivals[0][:, None] < chunk[0][None, :]
        for rival, row in zip(rivals[1:], chunk[1:], strict=True):
            better &= rival[:, None] < row[None, :]
        is_kept = np.count_nonzero(better, axis=0) < depth
        keep[start : start + _CHUNK] = is_kept
        kept = np.concatenate([kept, chunk[:, is_kept]], axis=1)
    result = np.empty(order.size, dtype=bool)
    result[order] = keep
    return result
