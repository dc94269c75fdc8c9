"""The samples that a stack of devices computes on at once."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True)
class Batch:
    """One batch for each device of a stack. Axis 0 is the device, axis 1 the sample.

    Devices with fewer samples than the longest repeat their first sample with weight zero.
    """

    inputs: Tensor  # (devices, samples, *shape), float32; token ids: int64
    targets: Tensor  # classes: (devices, samples), int64; real values: (devices, samples, outputs), float32
    weights: Tensor  # (devices, samples): 1 / size of the device's batch, 0 where padded

    def double(self) -> Batch:
        """Return the batch in double precision; token ids and class labels stay whole numbers."""
        inputs, targets = (
            values.double() if values.is_floating_point() else values
            for values in (self.inputs, self.targets)
        )
        return Batch(inputs, targets, self.weights.double())

    @property
    def num_devices(self) -> int:
        """How many devices are stacked."""
        return self.weights.shape[0]
