"""Selection uniformly at random, as in FedAvg and Per-FedAvg."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedwave.selection.candidates import Candidates
from fedwave.selection.policy import draw_devices
from fedwave.units import IntArray


@dataclass(frozen=True)
class Uniform:
    """Draw ``num_selected`` devices without replacement, before they compute: the others need not."""

    num_selected: int
    needs_reports: bool = False

    def ask(self, candidates: Candidates, *, rng: np.random.Generator) -> IntArray:
        """Return the draw."""
        return draw_devices(candidates, self.num_selected, rng=rng)

    def select(self, candidates: Candidates, *, rng: np.random.Generator) -> IntArray:
        """Return all that were drawn; reports play no part."""
        del rng
        return candidates.device_index
