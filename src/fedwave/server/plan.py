"""What a server decides in a round, and why."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedwave.allocation import Allocation
from fedwave.errors import ProblemError
from fedwave.units import FloatArray, IntArray


@dataclass(frozen=True, kw_only=True, eq=False)
class Plan:
    """Who uploads and, over a radio cell, on which block, at what power and CPU frequency."""

    selected: IntArray  # sorted device indices
    allocation: Allocation | None = None  # None: no radio to allocate
    scaled_contribution: FloatArray | None = None  # (n,), the contributions as the allocation saw them
    needs_reports: bool = True  # False: the choice did not need them, so nobody reports over the air
    reason: str = ""
    weights: FloatArray | None = None  # of each selected device's model; None: all weigh the same, Eq. (6)

    def __post_init__(self) -> None:
        if self.weights is None:
            return
        if np.shape(self.weights) != np.shape(self.selected):
            raise ProblemError(
                f"a plan needs one weight for each of the {len(self.selected)} selected devices, got shape "
                f"{np.shape(self.weights)}. Give them in the order of selected."
            )
        if not np.all(np.isfinite(self.weights) & (np.asarray(self.weights) > 0)):
            raise ProblemError(
                f"a plan's weights must be finite and > 0, got {np.asarray(self.weights).tolist()}. Leave "
                "out a device whose model is not to count."
            )

    def weights_of(self, received: IntArray) -> FloatArray | None:
        """Return the weights of those that arrived, in the order given; None where all weigh the same."""
        if self.weights is None:
            return None
        return np.asarray(self.weights, dtype=np.float64)[np.searchsorted(self.selected, received)]
