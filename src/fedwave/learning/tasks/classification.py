"""Classification: one output for each class, one class for each sample."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch.nn.functional as F
from torch import Tensor

from fedwave.learning.batch import Batch
from fedwave.metric import ACCURACY, Metric


@dataclass(frozen=True)
class Classification:
    """Cross-entropy of the class scores; the metric is the share of samples classified correctly."""

    metric: ClassVar[Metric] = ACCURACY

    def loss(self, outputs: Tensor, batch: Batch) -> Tensor:
        """Return each device's mean cross-entropy in nats, shape (devices,)."""
        per_sample = F.cross_entropy(outputs.flatten(0, 1), batch.targets.flatten(), reduction="none")
        return (per_sample.view_as(batch.weights) * batch.weights).sum(1)

    def scores(self, outputs: Tensor, batch: Batch) -> Tensor:
        """Return 1 where the largest output is that of the right class and 0 elsewhere."""
        return (outputs.argmax(-1) == batch.targets).to(outputs.dtype)
