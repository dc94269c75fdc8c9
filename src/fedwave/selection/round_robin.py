"""Round robin: whoever has waited longest uploads next."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedwave.selection.candidates import Candidates
from fedwave.units import IntArray


@dataclass(frozen=True)
class RoundRobin:
    """Choose the devices whose last upload was planned longest ago.

    Among equals, those that were chosen less often, then the lower index. Without the count, whoever has a
    low index would be ahead by one more turn in every cycle that does not come out even.
    """

    num_selected: int
    needs_reports: bool = False

    def ask(self, candidates: Candidates, *, rng: np.random.Generator) -> IntArray:
        """Return those that have waited longest; never selected counts as longest."""
        del rng
        history = candidates.history
        order = np.lexsort((history.times_selected, history.last_selected))  # the last key counts first
        return np.sort(candidates.device_index[order[: self.num_selected]])

    def select(self, candidates: Candidates, *, rng: np.random.Generator) -> IntArray:
        """Return all that were asked."""
        del rng
        return candidates.device_index
