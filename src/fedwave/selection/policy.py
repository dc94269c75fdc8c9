"""What a selection policy is: it says who computes, and then, with their reports at hand, who uploads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from fedwave.errors import ConfigError
from fedwave.selection.candidates import Candidates, RoundResult
from fedwave.units import IntArray


class SelectionPolicy(Protocol):
    """Chooses devices, round by round. Answers are sorted device indices out of ``candidates``.

    These members it must have. It may also have those of ``KeepsState`` and of ``DrawsCandidates``.
    """

    @property
    def num_selected(self) -> int:
        """How many devices it lets upload, n_k."""
        ...

    @property
    def needs_reports(self) -> bool:
        """Whether the choice rests on what devices report, so that the server must wait for the reports."""
        ...

    def ask(self, candidates: Candidates, *, rng: np.random.Generator) -> IntArray:
        """Return who computes in this round; nobody has reported yet. It is called once a round."""
        ...

    def select(self, candidates: Candidates, *, rng: np.random.Generator) -> IntArray:
        """Return who uploads, among those that were asked and have reported."""
        ...


@runtime_checkable
class KeepsState(Protocol):
    """A policy with a state of its own: arrays by name, which every checkpoint holds.

    ``ask`` and ``select`` find it as ``candidates.state``. Without these members the ``History`` of each
    device is all that is remembered.
    """

    def initial_state(self, num_devices: int) -> Mapping[str, NDArray[Any]]:
        """Return the state before the first round."""
        ...

    def after(self, result: RoundResult) -> Mapping[str, NDArray[Any]]:
        """Return the state after a round: arrays of the same names, shapes and types."""
        ...


@runtime_checkable
class DrawsCandidates(Protocol):
    """A policy that lets more devices compute than upload, and ranks them by something else than u."""

    @property
    def num_candidates(self) -> int | None:
        """How many devices it asks: the models of all of them are kept until it has chosen."""
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
