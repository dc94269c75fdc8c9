"""The batteries of a cell's devices: what they can give in a round, and their charge after it. Numpy alone.

A charge is followed from the start of a round to the start of the next. It is kept within 0 and the capacity
at the end of the round and at the end of the pause after it, not at every moment between.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fedwave.units import BoolArray, FloatArray

if TYPE_CHECKING:  # a harvest is read from settings, which needs more than numpy
    from fedwave.wireless.harvest import Harvest


@dataclass(frozen=True, kw_only=True, eq=False)
class Batteries:
    """What never changes about them; arrays have one entry per device."""

    capacity_j: FloatArray
    initial_charge_j: FloatArray
    draw_w: FloatArray  # what a device takes for itself at all times, training apart
    min_charge_j: FloatArray  # at or below it a device takes no part
    interval_s: float  # from the start of a round to the next; a longer round delays it
    harvest: Harvest

    def is_awake(self, charge_j: FloatArray) -> BoolArray:
        """Return who takes part in a round that begins with these charges."""
        return np.asarray(charge_j > self.min_charge_j)

    def available_j(self, charge_j: FloatArray, clock_s: float, delay_s: float) -> FloatArray:
        """Return what each can give to a round of this length: the charge and the harvest less its draw."""
        coming_j = self.harvest.energy_j(clock_s, clock_s + delay_s)
        return np.maximum(charge_j + coming_j - self.draw_w * delay_s, 0.0)

    def next_start_s(self, clock_s: float, delay_s: float) -> float:
        """Return when the next round begins, after a round that began at ``clock_s``."""
        return clock_s + max(delay_s, self.interval_s)

    def charge_after_j(self, left_j: FloatArray, clock_s: float, delay_s: float) -> FloatArray:
        """Return the charge at the start of the next round, given what the round left of ``available_j``."""
        end_s, next_s = clock_s + delay_s, self.next_start_s(clock_s, delay_s)
        coming_j = self.harvest.energy_j(end_s, next_s) - self.draw_w * (next_s - end_s)
        return np.clip(np.minimum(left_j, self.capacity_j) + coming_j, 0.0, self.capacity_j)
