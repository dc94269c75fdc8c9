"""What a round asks of the devices, in two phases: few numbers from many, then models from the chosen."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from fedwave.metric import Metric
from fedwave.server import Reports
from fedwave.units import FloatArray, IntArray

if TYPE_CHECKING:  # torch stands behind it; tables are read without
    from fedwave.learning import Parameters


@dataclass(frozen=True, eq=False)
class HeldOutResult:
    """The evaluation of a global model on the held-out devices, after adaptation to each of them.

    The training devices are evaluated in the same way where that is asked for.
    """

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
    def pooled_loss(self) -> float:
        """The mean over all query samples together: devices count by their number of these."""
        return float((self.loss * self.num_query).sum() / self.num_query.sum())

    @property
    def mean_metric(self) -> float:
        """The mean over devices of each one's metric."""
        return float(self.metric.mean())

    @property
    def pooled_metric(self) -> float:
        """The metric over all query samples together, e.g. the share that is classified correctly."""
        return float((self.metric * self.num_query).sum() / self.num_query.sum())


class Devices(Protocol):
    """The training devices and the held-out ones, wherever they compute.

    ``report`` comes first in a round, ``collect`` after it: the models of a round stay where they were
    computed until they are asked for, and are forgotten when the next round begins.
    """

    def report(
        self,
        round_index: int,
        parameters: Parameters,
        device_index: IntArray,
        *,
        max_models: int,
        num_local_steps: int | None = None,
    ) -> Reports:
        """Let the devices update the global model, Alg. 1 lines 3-10; return what they report (phase 1).

        ``max_models`` is how many local models are worth keeping, those that contribute most; what else is
        asked for is computed again. ``num_local_steps`` is given where ``algorithm.local_steps`` chooses it.
        """
        ...

    def collect(self, device_index: IntArray) -> Iterator[Parameters]:
        """Yield the local models of these devices, in the order given (phase 2)."""
        ...

    def evaluate(self, parameters: Parameters, *, on_training: bool = False) -> HeldOutResult | None:
        """Return how the global model serves the held-out devices; None if there are none.

        ``on_training`` asks for the training devices instead, with ``evaluation.training_devices`` alone.
        """
        ...

    def close(self) -> None:
        """Let go of threads, processes and connections."""
        ...
