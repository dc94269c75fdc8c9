"""SP2 at a given delay: devices to blocks by maximum-weight matching, Theorem 3."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedwave.allocation.linear_assignment import linear_sum_assignment
from fedwave.allocation.pairs import PairTable
from fedwave.units import FloatArray, IntArray

_SMALL = 4_000  # pairs; up to here looking for the best costs more than matching all


@dataclass(kw_only=True, eq=False, slots=True)  # not frozen: thousands are made
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

    def value(self, energy_factor: float) -> float:
        """Return sum of (u - e) over the matched pairs, Eq. (43), at the given energy factor."""
        return self.contribution - self.unit_cost * energy_factor


def assign_blocks(weight: FloatArray) -> tuple[IntArray, IntArray]:
    """Return the rows and columns of the matching with the largest total weight, Eq. (43).

    Pairs of weight <= 0 are never matched: leaving a block empty is allowed and worth 0.
    """
    row, column = linear_sum_assignment(np.minimum(-weight, 0.0))
    gain = weight[row, column]
    if row.size and gain.min() > 0.0:
        return row, column
    is_gain = gain > 0
    return row[is_gain], column[is_gain]


def best_matching(table: PairTable, *, energy_factor: float, smallest_cap: float) -> Matching:
    """Return the best matching of the pairs with snr_cap >= smallest_cap at an energy factor, Theorem 3.

    A block only ever needs one of its M best devices, so wide tables are first cut to those.
    """
    weight = table.weights(energy_factor, smallest_cap)
    num_blocks, width = weight.shape
    if table.is_shared and (width <= 2 * num_blocks or weight.size <= _SMALL):
        row, column = assign_blocks(weight)
    else:
        row, column = _assign_among_best(table, weight)
    return matching_of(table, row, column, energy_factor=energy_factor, smallest_cap=smallest_cap)


def matching_of(
    table: PairTable, row: IntArray, column: IntArray, *, energy_factor: float, smallest_cap: float
) -> Matching:
    """Return the matching of these rows and columns, the best one of the table at an energy factor."""
    caps = table.snr_cap[row, column]
    return Matching(
        row=row,
        column=column,
        contribution=float(np.add.reduce(table.contributions_at(row, column))),
        unit_cost=float(np.add.reduce(table.unit_cost[row, column])),
        caps=caps,
        snr_cap=float(np.minimum.reduce(caps)) if caps.size else np.inf,
        energy_factor=energy_factor,
        smallest_cap=smallest_cap,
    )


def _assign_among_best(table: PairTable, weight: FloatArray) -> tuple[IntArray, IntArray]:
    """Return the best matching, looking only at each block's M best pairs."""
    num_blocks, width = weight.shape
    count = min(num_blocks, width)
    best = np.argpartition(weight, width - count, axis=1)[:, width - count :]
    if table.is_shared:
        is_best = np.zeros(width, dtype=bool)
        is_best[best] = True
        kept = np.flatnonzero(is_best)
        row, column = assign_blocks(weight[:, kept])
        return row, kept[column]
    # Each row has columns of its own: spread the pairs over one matrix with a column per device.
    row = np.repeat(np.arange(num_blocks), count)
    pair_column = best.ravel()
    pair_weight = weight[row, pair_column]
    is_gain = pair_weight > 0
    row, pair_column, pair_weight = row[is_gain], pair_column[is_gain], pair_weight[is_gain]
    device, local = np.unique(table.device[row, pair_column], return_inverse=True)
    dense = np.zeros((num_blocks, device.size))
    column_of = np.zeros((num_blocks, device.size), dtype=np.int64)
    dense[row, local] = pair_weight
    column_of[row, local] = pair_column
    row, local = assign_blocks(dense)
    return row, column_of[row, local]
