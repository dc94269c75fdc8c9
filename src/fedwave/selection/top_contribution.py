"""NUFM's selection: the devices expected to lower the global loss most, Eq. (22)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedwave.selection.asking import ComparesReports
from fedwave.selection.candidates import Candidates, History, reported
from fedwave.units import FloatArray, IntArray


@dataclass(frozen=True)
class TopContribution(ComparesReports):
    """Choose the ``num_selected`` largest contributions; among equals, the lower index.

    By default everybody computes, as contributions are known only after that, Alg. 1 lines 3-10.
    """

    def remembered(self, history: History) -> FloatArray:
        """Return the contributions last reported."""
        return history.last_contribution

    def select(self, candidates: Candidates, *, rng: np.random.Generator) -> IntArray:
        """Return the devices with the largest contributions, Eq. (22), in O(n) expected time."""
        del rng  # deterministic
        values = reported(candidates.contribution, "contribution", "top-contribution")
        return candidates.device_index[largest(values, min(self.num_selected, len(candidates)))]


def largest(values: FloatArray, count: int) -> IntArray:
    """Return the sorted positions of the ``count`` largest values; equal values go to the lower position."""
    if count == 0:
        return np.zeros(0, dtype=np.int64)
    threshold = np.partition(values, len(values) - count)[len(values) - count]  # introselect, O(n)
    above = np.flatnonzero(values > threshold)
    level = np.flatnonzero(values == threshold)[: count - len(above)]
    return np.sort(np.concatenate([above, level])).astype(np.int64)
