"""What a selection policy is: it says who computes, and then, with their reports at hand, who uploads."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from fedwave.errors import ConfigError
from fedwave.selection.candidates import Candidates
from fedwave.units import IntArray


class SelectionPolicy(Protocol):
    """Chooses devices, round by round. Answers are sorted device indices out of ``candidates``."""

    @property
    def num_selected(self) -> int:
        """How many devices it lets upload, n_k."""
        ...

    @property
    def compares_reports(self) -> bool:
        """Whether the choice rests on what devices report, so that the server must wait for the reports."""
        ...

    def ask(self, candidates: Candidates, *, rng: np.random.Generator) -> IntArray:
        """Return who computes in this round; nobody has reported yet."""
        ...

    def select(self, candidates: Candidates, *, rng: np.random.Generator) -> IntArray:
        """Return who uploads, among those that were asked and have reported."""
        ...


def require_enough_devices(num_selected: int, num_devices: int) -> None:
    """Raise if more devices are to be selected than there are."""
    if not 1 <= num_selected <= num_devices:
        raise ConfigError(
            f"num_selected must be between 1 and the number of training devices ({num_devices}), "
            f"got {num_selected}. Select fewer devices or partition the data among more."
        )


def draw_devices(
    candidates: Candidates,
    count: int,
    *,
    rng: np.random.Generator,
    weights: np.ndarray[tuple[int], np.dtype[np.float64]] | None = None,
) -> IntArray:
    """Return ``count`` of the candidates (all, if they are fewer), drawn without replacement."""
    chosen = rng.choice(len(candidates), size=min(count, len(candidates)), replace=False, p=weights)
    return candidates.device_index[np.sort(chosen)]
