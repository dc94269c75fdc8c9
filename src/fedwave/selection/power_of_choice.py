"""Power of choice (Cho, Wang and Joshi, arXiv 2010.01243): of a random few, those with the largest loss."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedwave.errors import ConfigError
from fedwave.selection.candidates import Candidates, reported
from fedwave.selection.policy import draw_devices
from fedwave.selection.top_contribution import largest
from fedwave.units import IntArray


@dataclass(frozen=True)
class PowerOfChoice:
    """Draw d devices by their share of the data, let them compute, keep the ``num_selected`` largest losses.

    ``num_candidates`` is the paper's d; by default twice ``num_selected``.
    """

    num_selected: int
    num_candidates: int | None = None
    needs_reports: bool = True

    def __post_init__(self) -> None:
        if self.num_candidates is None:
            object.__setattr__(self, "num_candidates", 2 * self.num_selected)
        given: object = self.num_candidates
        if isinstance(given, bool) or not isinstance(given, int) or given < self.num_selected:
            raise ConfigError(
                f"num_candidates must be a whole number >= num_selected = {self.num_selected}, "
                f"got {given!r}. The devices are chosen among the candidates; draw more of them."
            )

    def ask(self, candidates: Candidates, *, rng: np.random.Generator) -> IntArray:
        """Return d devices, drawn without replacement with probabilities D_i / sum of D."""
        assert self.num_candidates is not None  # __post_init__
        share = candidates.num_samples / candidates.num_samples.sum()
        return draw_devices(candidates, self.num_candidates, rng=rng, weights=share)

    def select(self, candidates: Candidates, *, rng: np.random.Generator) -> IntArray:
        """Return the devices with the largest losses."""
        del rng
        values = reported(candidates.loss, "loss", "power-of-choice")
        return candidates.device_index[largest(values, min(self.num_selected, len(candidates)))]
