"""What a task is: the loss that devices descend and the metric that people read."""

from __future__ import annotations

from typing import Protocol

from torch import Tensor

from fedwave.learning.batch import Batch
from fedwave.metric import Metric


class Task(Protocol):
    """Compares the outputs of a stack of models, (devices, samples, outputs), with the targets of a batch."""

    @property
    def metric(self) -> Metric:
        """What ``scores`` measure."""
        ...

    def loss(self, outputs: Tensor, batch: Batch) -> Tensor:
        """Return each device's mean loss over its own samples, shape (devices,)."""
        ...

    def scores(self, outputs: Tensor, batch: Batch) -> Tensor:
        """Return the metric of every single sample, padded ones too, shape (devices, samples)."""
        ...
