"""Power of choice (Cho, Wang and Joshi, arXiv 2010.01243): of a random few, those with the largest loss."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedwave.selection.asking import ComparesReports
from fedwave.selection.candidates import Candidates, History, reported
from fedwave.selection.top_contribution import largest
from fedwave.units import FloatArray, IntArray


@dataclass(frozen=True)
class PowerOfChoice(ComparesReports):
    """Draw d devices by their share of the data, let them compute, keep the ``num_selected`` largest losses.

    ``num_candidates`` is the paper's d; by default twice ``num_selected``. With a memory it is akin to the
    paper's rpow-d, which ranks by losses that are not fresh; but here whoever uploads has just reported.
    """

    def __post_init__(self) -> None:
        if self.num_candidates is None:
            object.__setattr__(self, "num_candidates", 2 * self.num_selected)
        super().__post_init__()

    def remembered(self, history: History) -> FloatArray:
        """Return the losses last reported."""
        return history.last_loss

    def chances(self, candidates: Candidates) -> FloatArray:
        """Return D_i / sum of D."""
        share: FloatArray = candidates.num_samples / candidates.num_samples.sum()
        return share

    def select(self, candidates: Candidates, *, rng: np.random.Generator) -> IntArray:
        """Return the devices with the largest losses."""
        del rng
        values = reported(candidates.loss, "loss", "power-of-choice")
        return candidates.device_index[largest(values, min(self.num_selected, len(candidates)))]
