"""Regression: one output for each real value to predict."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from fedwave.errors import DataError
from fedwave.learning.batch import Batch
from fedwave.metric import MEAN_ABSOLUTE_ERROR, Metric


@dataclass(frozen=True)
class Regression:
    """Squared error, averaged over the outputs; the metric is the absolute error, in the targets' unit."""

    metric: ClassVar[Metric] = MEAN_ABSOLUTE_ERROR

    def loss(self, outputs: Tensor, batch: Batch) -> Tensor:
        """Return each device's mean squared error, shape (devices,)."""
        return (_error(outputs, batch).square().mean(-1) * batch.weights).sum(1)

    def scores(self, outputs: Tensor, batch: Batch) -> Tensor:
        """Return each sample's absolute error, averaged over the outputs."""
        return _error(outputs, batch).abs().mean(-1)


def _error(outputs: Tensor, batch: Batch) -> Tensor:
    # Targets without their last axis would broadcast against each other's samples and give a wrong loss.
    if batch.targets.shape != outputs.shape:
        raise DataError(
            f"regression needs a target for every output, shape {tuple(outputs.shape)}, got "
            f"{tuple(batch.targets.shape)}. Give each sample as many real targets as the model has outputs."
        )
    return outputs - batch.targets
