"""Which devices can be left out because enough others are at least as good in every respect.

If M others are at least as good as device i on a block, i is never needed there: at most M - 1 other
blocks are taken, so one of those M is free and can stand in for i at no loss. Ties are broken by index,
so that equal devices do not strike each other out. The exchange argument may be applied one device at a
time, each time moving up in a finite order, so *any* set of such devices may be removed together. Nor does
it matter whether a removed device still counts: of those better than i, the M foremost have fewer than M
better ones themselves, so they are never removed and suffice to rule out i.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedwave.units import BoolArray, FloatArray, IntArray

_SMALL = 600  # rows; up to here the walk costs more than it saves
_TINY = 200  # rows; up to here comparing all pairs is quicker than packing sets of rows into bits
_COUNT = np.uint8  # holds _TINY; so small, sums over rows are quick
_STRIP = 1024  # rivals compared at a time, one bit each
_MAX_COMPARISONS = 4_000_000_000  # about a second; then the rows not yet ruled out stay
_MANY = 8_000  # rows; beyond, counting who is better than whom takes too long to be worth it
_GRID = 4  # steps of the corner grid along each criterion


def undominated(criteria: tuple[FloatArray, ...], depth: int) -> IntArray:
    """Return the rows with fewer than ``depth`` others at least as good in every criterion, sorted.

    Larger is better; ``criteria`` are arrays of equal length (n,). Exactly these rows are returned, unless
    there are so many that finding them takes ``_MAX_COMPARISONS``: then others stay, too, which costs time
    later but never the optimum. Rows that already come by falling first criterion are sorted faster.
    """
    alive = np.arange(criteria[0].size)
    if alive.size > max(_SMALL, 2 * depth):
        alive = _walk_down(criteria, depth)
    if alive.size > depth and alive.size <= _TINY:
        alive = alive[_num_better(tuple(values[alive] for values in criteria)) < depth]
    elif alive.size > depth:
        alive = alive[_has_few_better(_ranks(tuple(values[alive] for values in criteria)), depth)]
    return alive


def roughly_undominated(criteria: tuple[FloatArray, ...], depth: int) -> IntArray:
    """Return the same where few rows are left soon, else a superset: quickly, whatever the rows are."""
    alive = np.arange(criteria[0].size)
    if alive.size > max(_SMALL, 2 * depth):
        alive = _walk_down(criteria, depth)
    if alive.size > _MANY:
        return alive
    return alive[undominated(tuple(values[alive] for values in criteria), depth)]


def _walk_down(criteria: tuple[FloatArray, ...], depth: int) -> IntArray:
    """Return the rows left, sorted, after a walk by falling first criterion, doubling the rows each time.

    Rows met before are at least as good in the first criterion, so a new row goes if it lies below a corner
    that ``depth`` of them reach in all other criteria. The corners try a grid of trade-offs between those.
    """
    order = np.argsort(-criteria[0], kind="stable")
    others = [criterion[order] for criterion in criteria[1:]]
    if not others:
        return np.sort(order[:depth])
    grid = sorted(_simplex(len(others)), key=max)  # balanced trade-offs remove most, so they come first
    met = max(_SMALL, 2 * depth)
    alive = np.arange(met)
    while met < order.size:
        known = [criterion[alive] for criterion in others]
        new = np.arange(met, min(2 * met, order.size))
        values = [criterion[met : 2 * met] for criterion in others]
        for shares in grid:
            if new.size <= depth:  # few rows more cost less than the next corner
                break
            corner = _corner(known, shares, depth)
            if corner is None:
                continue
            is_above = values[0] > corner[0]
            for criterion, bound in zip(values[1:], corner[1:], strict=True):
                is_above |= criterion > bound
            above = np.flatnonzero(is_above)
            new, values = new[above], [criterion[above] for criterion in values]
        alive = np.concatenate([alive, new])
        met *= 2
    return np.sort(order[alive])


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


def _num_better(criteria: tuple[FloatArray, ...]) -> NDArray[np.integer[Any]]:
    """Return how many rows are at least as good as each in every criterion; of equal rows, the earlier."""
    first, *others = criteria
    is_better = first[:, None] >= first
    for criterion in others:
        is_better &= criterion[:, None] >= criterion
    in_order = np.sort(first)
    if not (in_order[1:] == in_order[:-1]).any():  # no two are equal: only each is as good as itself
        return np.asarray(np.add.reduce(is_better.view(np.uint8), axis=0, dtype=_COUNT) - _COUNT(1))
    is_both = is_better & is_better.T
    return np.asarray(np.count_nonzero(is_better & ~np.tril(is_both), axis=0))


def _ranks(criteria: tuple[FloatArray, ...]) -> IntArray:
    """Return each criterion as distinct ranks, (k, n), the best first; ties go by one order for all.

    That order sorts by the first criterion, then the second and so on, then by index. A row at least as
    good in every criterion comes first in it, so no dominance is lost, and of equal rows the earlier one
    dominates.
    """
    rank = np.arange(criteria[0].size, dtype=np.int64)
    ranks = np.empty((len(criteria), rank.size), dtype=np.int64)
    order = np.lexsort([-criterion for criterion in reversed(criteria)])
    ranks[0, order] = rank
    for own, criterion in zip(ranks[1:], criteria[1:], strict=True):
        own[order[np.argsort(-criterion[order], kind="stable")]] = rank
    return ranks


def _has_few_better(ranks: IntArray, depth: int) -> BoolArray:
    """Return which rows have fewer than ``depth`` rows before them in every rank.

    Rivals are taken in the order of the sum of their ranks, so those better than a row come before it.
    """
    keep = np.ones(ranks.shape[1], dtype=bool)
    num_better = np.zeros(keep.size, dtype=np.int64)
    strongest = np.argsort(ranks.sum(axis=0, dtype=np.int64), kind="stable")
    alive = np.arange(keep.size)
    num_comparisons = 0
    while strongest.size:
        rivals, strongest = strongest[:_STRIP], strongest[_STRIP:]
        num_comparisons += rivals.size * alive.size
        if num_comparisons > _MAX_COMPARISONS:
            break
        num_better[alive] += _num_before(ranks, rivals, alive)
        keep = num_better < depth
        alive = np.flatnonzero(keep)
        strongest = strongest[keep[strongest]]
    return keep


def _num_before(ranks: IntArray, rivals: IntArray, rows: IntArray) -> IntArray:
    """Return how many rivals come before each row in every rank: intersected sets with a bit per rival."""
    position = np.arange(rivals.size)
    bit = np.left_shift(np.uint64(1), (position % 64).astype(np.uint64))
    num_words = -(-rivals.size // 64)
    before = np.full((rows.size, num_words), np.iinfo(np.uint64).max, dtype=np.uint64)
    for rank in ranks:
        order = np.argsort(rank[rivals])
        foremost = np.zeros((rivals.size + 1, num_words), dtype=np.uint64)
        foremost[position + 1, order // 64] = bit[order]
        np.bitwise_or.accumulate(foremost, axis=0, out=foremost)  # row c: the set of the c foremost rivals
        is_rival = np.zeros(rank.size + 1, dtype=np.int64)
        is_rival[rank[rivals] + 1] = 1
        before &= foremost[np.cumsum(is_rival)[rank[rows]]]
    return _num_bits(before)


def _num_bits(words: np.ndarray[tuple[int, int], np.dtype[np.uint64]]) -> IntArray:
    """Return the number of ones in each row."""
    if hasattr(np, "bitwise_count"):
        return np.asarray(np.bitwise_count(words).sum(axis=1, dtype=np.int64))
    bits = np.unpackbits(words.view(np.uint8), axis=1)  # numpy before 2.0
    return np.asarray(bits.sum(axis=1, dtype=np.int64))
