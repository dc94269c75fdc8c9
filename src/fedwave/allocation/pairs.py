"""The (device, block) pairs that a matching may use: what each is worth, and how fast it may send."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedwave.allocation.limits import snr_cap, watts_per_snr
from fedwave.allocation.problem import AllocationProblem
from fedwave.units import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, kw_only=True, eq=False)
class PairTable:
    """Candidate pairs as arrays of shape (M, K): each row lists K devices for one block.

    The value of a pair at a common SNR x is contribution - unit_cost * energy_factor(x), Theorem 3,
    provided that x <= snr_cap. ``device`` and ``contribution`` have one row if all blocks share their
    candidates.
    """

    block: IntArray  # (M,), the block of each row
    device: IntArray  # (1, K) or (M, K)
    contribution: FloatArray  # u, the same shape as device
    unit_cost: FloatArray  # eta_1 s (I_m + B N0) / h, (M, K)
    snr_cap: FloatArray  # (M, K); 0 = never feasible

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

    def devices_at(self, row: IntArray, column: IntArray) -> IntArray:
        """Return the device of each (row, column)."""
        return self.device[0, column] if self.is_shared else self.device[row, column]

    def contributions_at(self, row: IntArray, column: IntArray) -> FloatArray:
        """Return u of each (row, column)."""
        return self.contribution[0, column] if self.is_shared else self.contribution[row, column]


def pair_table(problem: AllocationProblem, device: IntArray, is_real: BoolArray | None = None) -> PairTable:
    """Return the table of the given devices, (1, K) or (M, K); entries that are not real are padding."""
    # The quietest block first: the matching's augmenting paths are then about a quarter shorter.
    block = np.argsort(problem.block_noise_w, kind="stable")
    if len(device) > 1:
        device = device[block]
    shape = (problem.num_blocks, device.shape[1])
    every = np.broadcast_to(device, shape)
    cap = snr_cap(problem, every, block[:, None])
    if is_real is not None:
        cap = np.where(is_real[block], cap, 0.0)
    unit_cost = np.zeros(shape)
    if problem.energy_weight > 0:
        watts = watts_per_snr(problem, every, block[:, None])
        with np.errstate(over="ignore"):
            unit_cost = problem.energy_weight * problem.nat_time_s * np.where(cap > 0, watts, 0.0)
    return PairTable(
        block=block,
        device=device,
        contribution=problem.contribution[device],
        unit_cost=unit_cost,
        snr_cap=cap,
    )


def all_pairs(problem: AllocationProblem, *, may_upload: BoolArray | None = None) -> PairTable:
    """Return every device on every block, unpruned, as Alg. 2 is printed. Takes O(n M) memory."""
    device = np.arange(problem.num_devices) if may_upload is None else np.flatnonzero(may_upload)
    return pair_table(problem, device[None, :])
