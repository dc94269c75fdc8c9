"""What every kind of interference offers to the cell."""

from __future__ import annotations

import numpy as np

from fedwave.settings import Section
from fedwave.units import FloatArray


class InterferenceSection(Section):
    """One way to say how much others disturb each block."""

    def check(self, *, num_blocks: int) -> None:
        """Raise if the powers could be negative or do not fit the number of blocks."""

    def draw_w(self, *, num_blocks: int, noise_w: float, rng: np.random.Generator) -> FloatArray:
        """Return I_m for each block, shape (M,). ``noise_w`` is the thermal noise B N0 in one block."""
        raise NotImplementedError
