"""SP2 at a given delay: devices to blocks by maximum-weight matching, Theorem 3."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from pathlib import Path

import numpy as np

from fedwave.allocation.uploads.pairs import PairTable
from fedwave.units import FloatArray, IntArray

_SMALL = 4_000  # pairs; up to here sorting all is the quickest way to the best
_CROWD = 1.5  # devices per block; up to here all are matched
_TINY = math.ulp(0.0)

_Assign = Callable[[FloatArray], tuple[IntArray, IntArray]]


def _load() -> _Assign:
    """Return scipy's ``linear_sum_assignment``, loaded without the rest of ``scipy.optimize``.

    That package takes longer to import than all of ours, for one compiled function. Its file is loaded by
    itself where it is found; where scipy keeps it elsewhere, the public name is imported as usual.
    """
    found = None
    if "scipy.optimize" not in sys.modules:
        found = _load_alone()
    if found is None:
        from scipy.optimize import linear_sum_assignment

        found = linear_sum_assignment
    return found


def _load_alone() -> _Assign | None:
    """Return the function from its own file, or None if it is not where we know it."""
    scipy = find_spec("scipy")
    if scipy is None or not scipy.submodule_search_locations:
        return None
    folder = Path(next(iter(scipy.submodule_search_locations))) / "optimize"
    spec = PathFinder.find_spec("_lsap", [str(folder)])
    if spec is None or spec.loader is None:
        return None
    try:
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
    except ImportError:
        return None
    found: _Assign | None = getattr(module, "linear_sum_assignment", None)
    return found


linear_sum_assignment = _load()


@dataclass(eq=False, slots=True)  # not frozen: thousands are made
class Matching:
    """A matching of candidate pairs; its value at SNR x is contribution - unit_cost * energy_factor(x)."""

    row: IntArray  # row of each matched pair in the pair table
    column: IntArray  # column of each matched pair in the pair table
    contribution: float
    unit_cost: float
    caps: FloatArray  # SNR cap of each matched pair
    energy_factor: float  # at which it is the best,
    smallest_cap: float  # of the pairs that can reach this SNR
    snr_cap: float  # the largest SNR that all matched devices can reach; infinite if there is none
    best_value: float  # at that energy factor

    def value(self, energy_factor: float) -> float:
        """Return sum of (u - e) over the matched pairs, Eq. (43), at the given energy factor."""
        return self.contribution - self.unit_cost * energy_factor


def assign_blocks(weight: FloatArray, *, num_barred: int = 0) -> tuple[IntArray, IntArray]:
    """Return the rows and columns of the matching with the largest total weight, Eq. (43).

    Pairs of weight <= 0 are never matched: leaving a block empty is allowed and worth 0. ``num_barred`` rows
    must stay empty, whichever they are.
    """
    return assign_losses(np.minimum(-weight, 0.0), num_barred=num_barred)


def assign_devices(weight: FloatArray, *, num_barred: int = 0) -> tuple[IntArray, IntArray]:
    """Return the same where rows are devices and columns blocks."""
    if num_barred == 0:
        return assign_blocks(weight)
    block, device = assign_blocks(weight.T, num_barred=num_barred)
    return device, block


def assign_losses(loss: FloatArray, *, num_barred: int = 0) -> tuple[IntArray, IntArray]:
    """Return the same from minus the weights, none of them above 0.

    Barred rows go to columns that are worth twice the best pair, so that each of them takes one. The value of
    the best matching is concave in its number of pairs, hence no further pair brings more than the best one.
    """
    if num_barred:
        return _assign_few(loss, num_barred)
    row, column = linear_sum_assignment(loss)
    won = loss[row, column]
    if won.size and np.maximum.reduce(won) < 0.0:
        return row, column
    is_gain = won < 0.0
    return row[is_gain], column[is_gain]


def _assign_few(loss: FloatArray, num_barred: int) -> tuple[IntArray, IntArray]:
    num_rows, width = loss.shape
    barred = np.full((num_rows, num_barred), 2.0 * loss.min(initial=0.0))
    row, column = linear_sum_assignment(np.hstack([loss, barred]))
    is_real = column < width
    row, column = row[is_real], column[is_real]
    is_gain = loss[row, column] < 0.0
    return row[is_gain], column[is_gain]


def best_matching(table: PairTable, *, energy_factor: float, smallest_cap: float) -> Matching:
    """Return the best matching of the pairs with snr_cap >= smallest_cap at an energy factor, Theorem 3.

    A block only ever needs one of its M best devices, so wide tables are first cut to those. At most as many
    pairs are matched as there are blocks that need not stay empty.
    """
    loss = table.losses(energy_factor, smallest_cap)
    num_blocks, width = loss.shape
    if not table.is_shared:
        row, column = _assign_own_columns(table, loss)
    elif width <= _CROWD * num_blocks:
        row, column = assign_losses(loss, num_barred=table.num_barred)
    else:
        kept = _best_columns(loss) if loss.size <= _SMALL else _roughly_best_columns(loss)
        row, column = assign_losses(loss.take(kept, axis=1), num_barred=table.num_barred)
        column = kept.take(column)
    return matching_of(table, row, column, energy_factor=energy_factor, smallest_cap=smallest_cap)


def _best_columns(loss: FloatArray) -> IntArray:
    """Return the columns that are among the M best of some row, ties included, and worth anything."""
    count = len(loss)
    most = loss.copy()
    most.sort(axis=1)  # of few numbers: quicker than a partition
    is_best = loss <= np.minimum(most[:, count - 1 : count], -_TINY)
    return np.asarray(np.logical_or.reduce(is_best, axis=0).nonzero()[0])


def matching_of(
    table: PairTable, row: IntArray, column: IntArray, *, energy_factor: float, smallest_cap: float
) -> Matching:
    """Return the matching of these rows and columns, the best one of the table at an energy factor."""
    place = row * table.unit_cost.shape[1] + column
    caps = table.snr_cap.ravel().take(place)
    contribution = float(np.add.reduce(table.contributions_at(row, column)))
    unit_cost = float(np.add.reduce(table.unit_cost.ravel().take(place)))
    return Matching(
        row,
        column,
        contribution,
        unit_cost,
        caps,
        energy_factor,
        smallest_cap,
        float(np.minimum.reduce(caps)) if caps.size else np.inf,
        contribution - unit_cost * energy_factor,
    )


def _roughly_best_columns(loss: FloatArray) -> IntArray:
    """Return M best columns of each row; of ties, some. For wide tables."""
    num_blocks, width = loss.shape
    is_best = np.zeros(width, dtype=bool)
    is_best[np.argpartition(loss, num_blocks - 1, axis=1)[:, :num_blocks]] = True
    return np.flatnonzero(is_best)


def _assign_own_columns(table: PairTable, loss: FloatArray) -> tuple[IntArray, IntArray]:
    """Return the best matching where each row has columns of its own, looking only at its M best.

    The pairs are spread over one matrix with a column per device.
    """
    num_blocks, width = loss.shape
    count = min(num_blocks, width)
    best = np.argpartition(loss, count - 1, axis=1)[:, :count] if count else np.zeros((num_blocks, 0), int)
    row = np.repeat(np.arange(num_blocks), count)
    pair_column = best.ravel()
    pair_loss = loss[row, pair_column]
    is_gain = pair_loss < 0
    row, pair_column, pair_loss = row[is_gain], pair_column[is_gain], pair_loss[is_gain]
    device, local = np.unique(table.device[row, pair_column], return_inverse=True)
    dense = np.zeros((num_blocks, device.size))
    column_of = np.zeros((num_blocks, device.size), dtype=np.int64)
    dense[row, local] = pair_loss
    column_of[row, local] = pair_column
    row, local = assign_losses(dense, num_barred=table.num_barred)
    return row, column_of[row, local]
