"""What every kind of interference offers to the cell."""

from __future__ import annotations

from typing import ClassVar, Protocol

import numpy as np

from fedwave.settings import Part
from fedwave.units import FloatArray


class Interference(Protocol):
    """One way to say how much others disturb each block."""

    def draw_w(self, *, num_blocks: int, noise_w: float, rng: np.random.Generator) -> FloatArray:
        """Return I_m for each block, shape (M,). ``noise_w`` is the thermal noise B N0 in one block."""
        ...


class InterferencePart(Part):
    """What a cell's ``interference`` names: a kind of ``INTERFERENCES``, or one of the user's own."""

    of: ClassVar[str] = "fedwave.wireless.interference:INTERFERENCE"

    kind: str = "none"


class InterferenceSection(InterferencePart, extra="forbid"):
    """Interference whose options are its fields."""
