"""What a node's app asks of its device. A device of your own has these methods, and needs no torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from numpy.typing import NDArray

from fedwave.flower.messages import Grant, NamedArrays, Radio
from fedwave.units import FloatArray


@dataclass(frozen=True, kw_only=True, eq=False)
class Update:
    """A device's local model and what it tells of it, Alg. 1 lines 3-11."""

    arrays: NamedArrays  # theta_i, by the names of the global model
    contribution: float  # u_i, Eq. (21)
    loss: float
    num_samples: int  # D_i
    gradient_norms: FloatArray  # (tau,)


class Device(Protocol):
    """A device as its node's app asks it."""

    @property
    def num_samples(self) -> int:
        """D_i, its number of local samples."""
        ...

    def update(self, round_index: int, arrays: Mapping[str, NDArray[Any]]) -> Update:
        """Return the local update of the global model."""
        ...

    def radio(self, round_index: int) -> Radio | None:
        """Return its limits and the channel it measures; None where there is no cell."""
        ...

    def granted(self, grant: Grant) -> None:
        """Called before the upload, with the block, power and frequency to use for it."""
        ...

    def evaluate(self, arrays: Mapping[str, NDArray[Any]]) -> Mapping[str, float]:
        """Return figures of the global model after adaptation to this device."""
        ...
