"""The matrix products that a round of exact Per-FedAvg with a CNN cannot do without, and nothing else.

A gradient takes three products a layer: forward, to the weights, to the images (not in the first layer).
The support set needs that once, and twice more for the Hessian-vector product; the query set once. All are
done as batched matrix products at the shapes of a round, in its order, into buffers that are made once.
What a round takes beyond that are copies, pooling, activations, steps and Python.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from fedwave.devices import LocalWork
from fedwave.learning.models import Cnn


class GemmLimit:
    """The products of one round, ready to run."""

    def __init__(self, work: LocalWork, *, dtype: torch.dtype = torch.float32) -> None:
        assert isinstance(work.model, Cnn)
        self.flops = 0
        self._calls: list[tuple[Tensor, Tensor, Tensor]] = []
        layers = _layers(work.model)
        shapes = [_shape(work, chunk) for chunk in work.chunks(np.arange(len(work.pool)))]
        device = work.pool.torch_device
        most = max(devices * max(support, query) for devices, support, query in shapes)
        buffers = [
            [
                torch.randn(size, device=device).to(dtype)
                for size in (most * pixels * depth, most * pixels * width, most * depth * width)
            ]
            for pixels, depth, width in layers
        ]
        for devices, support, query in shapes:
            passes = ((support, 1, False), (support, 1, True), (query, 1, False), (query, 1, True))
            for samples, times, is_backward in (*passes, (support, 2, False), (support, 2, True)):
                for number, (pixels, depth, width) in enumerate(layers):
                    rows = samples * pixels
                    patches, responses, weight = buffers[number]
                    a = patches[: devices * rows * depth].view(devices, rows, depth)
                    b = weight[: devices * depth * width].view(devices, depth, width)
                    c = responses[: devices * rows * width].view(devices, rows, width)
                    calls = [(a.mT, c, b), (c, b.mT, a)] if is_backward else [(a, b, c)]
                    is_first = number == 0  # its images are data: nothing flows back to them, nor along them
                    calls = calls[:1] if is_first else calls * times
                    self._calls += calls
                    self.flops += 2 * devices * rows * depth * width * len(calls)

    def run(self) -> None:
        """Do all products once."""
        for left, right, out in self._calls:
            torch.bmm(left, right, out=out)


def _layers(model: Cnn) -> list[tuple[int, int, int]]:
    """Return pixels, inputs of a product and outputs of each layer."""
    before, height, width = model.input_shape
    layers = []
    for after in model.channels:
        layers.append((height * width, 9 * before, after))
        before, height, width = after, -(-height // 2), -(-width // 2)
    return [*layers, (1, height * width * before, model.num_outputs)]


def _shape(work: LocalWork, chunk: np.ndarray) -> tuple[int, int, int]:
    """Return devices, support samples and query samples of a chunk, padding included."""
    support, query = work.pool.support(chunk), work.pool.query(chunk)
    return len(chunk), support.weights.shape[1], query.weights.shape[1]
