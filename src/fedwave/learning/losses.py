"""The loss that devices descend and the batches it takes."""

from __future__ import annotations

from dataclasses import dataclass

import torch.nn.functional as F
from torch import Tensor


@dataclass(frozen=True)
class Batch:
    """One batch for each device of a stack. Axis 0 is the device, axis 1 the sample.

    Devices with fewer samples than the longest repeat their first sample with weight zero.
    """

    inputs: Tensor  # (devices, samples, *shape)
    labels: Tensor  # (devices, samples), int64
    weights: Tensor  # (devices, samples): 1 / size of the device's batch, 0 where padded


def cross_entropy(logits: Tensor, batch: Batch) -> Tensor:
    """Return each device's mean cross-entropy over its own samples, shape (devices,)."""
    per_sample = F.cross_entropy(logits.flatten(0, 1), batch.labels.flatten(), reduction="none")
    return (per_sample.view_as(batch.weights) * batch.weights).sum(1)


def accuracy(logits: Tensor, batch: Batch) -> Tensor:
    """Return the share of each device's samples that are classified correctly, shape (devices,)."""
    return ((logits.argmax(-1) == batch.labels) * batch.weights).sum(1)
