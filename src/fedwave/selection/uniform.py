"""Selection uniformly at random, as in FedAvg and Per-FedAvg."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedwave.selection.policy import require_enough_devices
from fedwave.units import FloatArray, IntArray


@dataclass(frozen=True)
class Uniform:
    """Choose ``num_selected`` devices at random, without replacement."""

    num_selected: int
    needs_contribution: bool = False

    def select(
        self, num_devices: int, contribution: FloatArray | None, *, rng: np.random.Generator
    ) -> IntArray:
        """Return the sorted positions of a uniform draw; contributions play no part."""
        del contribution
        require_enough_devices(self.num_selected, num_devices)
        return np.sort(rng.choice(num_devices, size=self.num_selected, replace=False)).astype(np.int64)
