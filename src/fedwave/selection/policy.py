"""What a selection policy is: it chooses, among the training devices, those that upload."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from fedwave.errors import ConfigError
from fedwave.units import FloatArray, IntArray


class SelectionPolicy(Protocol):
    """Chooses the devices that upload this round."""

    @property
    def needs_contribution(self) -> bool:
        """Whether every device must compute before the choice; if not, only the chosen ones compute."""
        ...

    def select(
        self, num_devices: int, contribution: FloatArray | None, *, rng: np.random.Generator
    ) -> IntArray:
        """Return the sorted positions of the chosen devices, out of ``range(num_devices)``."""
        ...


def require_enough_devices(num_selected: int, num_devices: int) -> None:
    """Raise if more devices are to be selected than there are."""
    if not 1 <= num_selected <= num_devices:
        raise ConfigError(
            f"num_selected must be between 1 and the number of training devices ({num_devices}), "
            f"got {num_selected}. Select fewer devices or partition the data among more."
        )
