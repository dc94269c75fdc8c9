"""The (device, block) pairs that a matching may use: what each is worth, and how fast it may send."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from fedwave.allocation.problem import AllocationProblem
from fedwave.allocation.uploads.common_snr import CommonSnr
from fedwave.allocation.uploads.faster_uploads import (
    FasterUploads,
    columns_of,
    faster_uploads,
    may_be_faster,
)
from fedwave.allocation.uploads.snr_range import snr_caps, watts_per_snr
from fedwave.units import BoolArray, FloatArray, IntArray

_HUGE = 1e300  # costs beyond this may overflow
_LEVEL_SNR = 1e-60  # below, e(x) is 1 by any measure, so what a pair is worth does not fall with the SNR


@dataclass(frozen=True, kw_only=True, eq=False)
class PairTable:
    """Candidate pairs as arrays of shape (M, K): each row lists K devices for one block.

    The value of a pair at a common SNR x is contribution - unit_cost * energy_factor(x), Theorem 3,
    provided that x <= snr_cap. ``device`` and ``contribution`` have one row if all blocks share their
    candidates. With ``faster`` pairs may send faster than x, and the value is that of faster_uploads.py.
    """

    block: IntArray  # (M,), the block of each row
    device: IntArray  # (1, K) or (M, K)
    contribution: FloatArray  # u, the same shape as device; of a tangent (M, K)
    unit_cost: FloatArray  # eta_1 s (I_m + B N0) / (h xi), (M, K)
    snr_cap: FloatArray  # (M, K); 0 = never feasible
    faster: FasterUploads | None = None
    num_barred: int = 0  # blocks that must stay empty, whichever they are: M less max_uploads

    @property
    def is_shared(self) -> bool:
        """Return whether column k is the same device in every row."""
        return len(self.device) == 1

    @property
    def largest_contribution(self) -> float:
        """Return a bound on any matching's contribution: the M best devices, or the best of each row."""
        if self.is_shared:
            return float(np.sort(self.contribution[0])[-len(self.block) :].sum())
        return float(np.maximum(self.contribution.max(axis=1), 0.0).sum())

    def losses(self, energy_factor: float, smallest_cap: float) -> FloatArray:
        """Return minus what each pair is worth at an energy factor, (M, K); 0 if nothing or below the cap."""
        if self._largest_cost * energy_factor < _HUGE:
            loss = self.unit_cost * energy_factor
            loss -= self.contribution
        else:
            with np.errstate(over="ignore", invalid="ignore"):  # a hopeless pair may cost infinitely much
                loss = self.unit_cost * energy_factor - self.contribution
        np.putmask(loss, self.snr_cap < smallest_cap, 0.0)  # quicker than an assignment
        return np.minimum(loss, 0.0, out=loss)

    def weights(self, energy_factor: float, smallest_cap: float) -> FloatArray:
        """Return what each pair is worth at an energy factor, (M, K); 0 if nothing or below the cap."""
        return -self.losses(energy_factor, smallest_cap)

    @cached_property
    def _largest_cost(self) -> float:
        return float(self.unit_cost.max(initial=0.0))

    def devices_at(self, row: IntArray, column: IntArray) -> IntArray:
        """Return the device of each (row, column)."""
        return self.device[0, column] if self.is_shared else self.device[row, column]

    def contributions_at(self, row: IntArray, column: IntArray) -> FloatArray:
        """Return u of each (row, column)."""
        return self.contribution[0, column] if len(self.contribution) == 1 else self.contribution[row, column]

    def snr_at(self, row: IntArray, column: IntArray, snr: float) -> FloatArray:
        """Return the SNR that each (row, column) uses if the common one is this."""
        if self.faster is None:
            return np.full(row.shape, snr)
        return np.maximum(self.faster.favourite[row, column], snr)

    def joined_by(self, *others: PairTable) -> PairTable:
        """Return this table with the columns of others after its own; all are shared."""
        tables = [self, *others]
        assert all(table.is_shared for table in tables)
        faster = [table.faster for table in tables if table.faster is not None]
        return replace(
            self,
            device=np.hstack([table.device for table in tables]),
            contribution=np.hstack([table.contribution for table in tables]),
            unit_cost=np.hstack([table.unit_cost for table in tables]),
            snr_cap=np.hstack([table.snr_cap for table in tables]),
            faster=faster[0].joined_by(*faster[1:]) if faster else None,
        )

    def columns(self, which: IntArray) -> PairTable:
        """Return some columns of this table, which is shared, in this order; each lies in one piece."""
        assert self.is_shared
        return replace(
            self,
            device=self.device[:, which],
            contribution=self.contribution[:, which],
            unit_cost=columns_of(self.unit_cost, which),
            snr_cap=columns_of(self.snr_cap, which),
            faster=None if self.faster is None else self.faster.columns(which),
        )

    def tangent(self, snr: float) -> PairTable:
        """Return a table of straight lines in e that bound each pair's value from above, and touch it at x.

        Values are concave in e, see faster_uploads.py, so tangents bound them; otherwise they are lines.
        """
        if self.faster is None:
            return self
        faster = self.faster
        if snr < _LEVEL_SNR:
            level = np.zeros(self.unit_cost.shape)
            return replace(self, contribution=faster.worth, unit_cost=level, faster=None)
        success, slope, circuit, circuit_slope = faster.tangent(snr)
        contribution = success * self.contribution - faster.circuit_cost * circuit
        unit_cost = self.unit_cost - (slope * self.contribution + faster.circuit_cost * circuit_slope)
        # A pair whose favourite is its cap never leaves it; the others are concave from m on, and fall.
        follows = (faster.favourite < np.minimum(self.snr_cap, snr)) & (unit_cost > 0.0)
        return replace(
            self,
            contribution=np.where(follows, contribution, faster.worth),
            unit_cost=np.where(follows, unit_cost, 0.0),
            faster=None,
        )

    def common_snr(self, row: IntArray, column: IntArray) -> CommonSnr:
        """Return the value of a set of pairs as a function of the common SNR."""
        assert self.faster is not None  # otherwise it is a line
        return CommonSnr.of(
            self.faster, self.contributions_at(row, column), self.unit_cost[row, column], (row, column)
        )


def pair_table(problem: AllocationProblem, device: IntArray, is_real: BoolArray | None = None) -> PairTable:
    """Return the table of the given devices, (1, K) or (M, K); entries that are not real are padding."""
    # The quietest block first: the matching's augmenting paths are then about a quarter shorter.
    block = np.argsort(problem.block_noise_w, kind="stable")
    if len(device) > 1:
        device = device[block]
    is_real = None if is_real is None else is_real[block]
    return replace(pairs_on(problem, device, block[:, None], is_real), block=block)


def pairs_on(
    problem: AllocationProblem, device: IntArray, block: IntArray, is_real: BoolArray | None = None
) -> PairTable:
    """Return the pairs of these devices, (1, K) or (R, K), and blocks, (R, 1) or (R, K).

    Rows need not be blocks: where each device has a block of its own in a row, ``block`` of the table only
    numbers them.
    """
    shape = (len(block), device.shape[1])
    cap, own_cap = snr_caps(problem, device, block)
    if is_real is not None:
        cap = np.where(is_real, cap, 0.0)
    unit_cost = np.zeros(shape)
    if problem.counts_energy:
        watts = watts_per_snr(problem, device, block)
        with np.errstate(over="ignore"):
            unit_cost = problem.price_of(device) * problem.nat_delay_s * np.where(cap > 0, watts, 0.0)
            if problem.radio.amplifier_efficiency != 1.0:
                unit_cost = unit_cost / problem.radio.amplifier_efficiency
    faster = None
    if may_be_faster(problem):
        faster = faster_uploads(
            problem,
            np.broadcast_to(device, shape),
            np.broadcast_to(block, shape),
            contribution=np.broadcast_to(problem.contribution[device], shape),
            unit_cost=unit_cost,
            own_cap=np.where(cap > 0, own_cap, 0.0),
        )
        cap = np.where(faster.worth > 0.0, cap, 0.0)
    return PairTable(
        block=np.arange(len(block)),
        device=device,
        contribution=problem.contribution[device],
        unit_cost=unit_cost,
        snr_cap=cap,
        faster=faster,
        num_barred=max(problem.num_blocks - problem.most_uploads, 0),
    )


def all_pairs(problem: AllocationProblem, *, may_upload: BoolArray | None = None) -> PairTable:
    """Return every device on every block, unpruned, as Alg. 2 is printed. Takes O(n M) memory."""
    device = np.arange(problem.num_devices) if may_upload is None else np.flatnonzero(may_upload)
    return pair_table(problem, device[None, :])
