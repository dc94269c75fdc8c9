"""What a run reports: one record a round, rows for each device. Never read back by the algorithm."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from fedwave.learning.tasks import Metric
from fedwave.units import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class HeldOutResult:
    """The evaluation of a global model on the held-out devices, after adaptation to each of them."""

    device_ids: IntArray
    num_query: IntArray
    loss: FloatArray
    metric: FloatArray
    measured: Metric  # what the metric is

    @property
    def mean_loss(self) -> float:
        """The mean over devices, as in Eq. (1)."""
        return float(self.loss.mean())

    @property
    def mean_metric(self) -> float:
        """The mean over devices of each one's metric."""
        return float(self.metric.mean())

    @property
    def pooled_metric(self) -> float:
        """The metric over all query samples together, e.g. the share that is classified correctly."""
        return float((self.metric * self.num_query).sum() / self.num_query.sum())


@dataclass(frozen=True, eq=False)
class RoundRecord:
    """Everything that is reported about one round."""

    round_index: int
    columns: Mapping[str, Any]  # one value each: a row of rounds.csv
    device_ids: IntArray
    device_columns: Mapping[str, NDArray[Any]]  # one entry a training device: rows of devices.csv
    heldout: HeldOutResult | None  # None in rounds without evaluation
