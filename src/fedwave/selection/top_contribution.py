"""NUFM's selection: the devices expected to lower the global loss most, Eq. (22)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedwave.errors import ProblemError
from fedwave.selection.policy import require_enough_devices
from fedwave.units import FloatArray, IntArray


@dataclass(frozen=True)
class TopContribution:
    """Choose the ``num_selected`` largest contributions; among equals, the lower index."""

    num_selected: int
    needs_contribution: bool = True

    def select(
        self, num_devices: int, contribution: FloatArray | None, *, rng: np.random.Generator
    ) -> IntArray:
        """Return the sorted positions of the largest contributions, Eq. (22), in O(n) expected time."""
        del rng  # deterministic
        if contribution is None or contribution.shape != (num_devices,):
            raise ProblemError(
                f"top-contribution needs a contribution from each of the {num_devices} devices, got "
                f"{None if contribution is None else contribution.shape}. Let every device compute first."
            )
        require_enough_devices(self.num_selected, num_devices)
        return largest(contribution, self.num_selected)


def largest(values: FloatArray, count: int) -> IntArray:
    """Return the sorted positions of the ``count`` largest values; equal values go to the lower position."""
    threshold = np.partition(values, len(values) - count)[len(values) - count]  # introselect, O(n)
    above = np.flatnonzero(values > threshold)
    level = np.flatnonzero(values == threshold)[: count - len(above)]
    return np.sort(np.concatenate([above, level])).astype(np.int64)
