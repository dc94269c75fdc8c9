"""What a run reports: one record a round, columns for each device. Never read back by the algorithm."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from fedwave.units import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class HeldOut:
    """The evaluation of a global model on the held-out devices."""

    device_ids: IntArray
    num_query: IntArray
    loss: FloatArray
    accuracy: FloatArray

    @property
    def mean_loss(self) -> float:
        """The mean over devices, as in Eq. (1)."""
        return float(self.loss.mean())

    @property
    def mean_accuracy(self) -> float:
        """The mean over devices of each one's accuracy."""
        return float(self.accuracy.mean())

    @property
    def pooled_accuracy(self) -> float:
        """The share of all query samples that are classified correctly."""
        return float((self.accuracy * self.num_query).sum() / self.num_query.sum())


@dataclass(frozen=True, eq=False)
class RoundRecord:
    """Everything that is reported about one round."""

    round_index: int
    columns: Mapping[str, Any]  # one value each: a row of rounds.csv
    device_ids: IntArray
    device_columns: Mapping[str, NDArray[Any]]  # one entry a training device: rows of devices.csv
    heldout: HeldOut | None  # None in rounds without evaluation
