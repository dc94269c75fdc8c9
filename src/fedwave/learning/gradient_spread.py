"""How much devices disagree on where to go, as the server sees it: delta of Wang et al. from uploads."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fedwave.learning.parameters import Parameters
from fedwave.units import FloatArray


def gradient_divergence(
    before: Parameters, models: Sequence[Parameters], gradient_norms: FloatArray, weights: FloatArray | None
) -> FloatArray:
    """Return delta_i = |g_i - g| of each upload, where g is the mean of the g_i, weighted as the models are.

    g_i stands for grad F_i at the global model ``before``: its length is the first of the norms that the
    device reports, its direction that of the way it went. With one local step it is that gradient itself, so
    that no gradient need be sent; with more, its direction is the mean one of the steps.
    """
    shares = np.full(len(models), 1.0 / len(models)) if weights is None else weights / weights.sum()
    lengths = [_length(before, model) for model in models]
    # numpy sums in one thread: the bits are the same for any number of cores
    scales = [
        size / length if length > 0 else 0.0 for size, length in zip(gradient_norms, lengths, strict=True)
    ]
    squares = np.zeros(len(models))
    for name in before:
        mean = sum(
            share * scale * _gone(before, model, name)
            for share, scale, model in zip(shares, scales, models, strict=True)
        )
        for i, (scale, model) in enumerate(zip(scales, models, strict=True)):
            squares[i] += np.sum((scale * _gone(before, model, name) - mean) ** 2)
    return np.sqrt(squares)


def _length(before: Parameters, model: Parameters) -> float:
    return float(np.sqrt(sum(np.sum(_gone(before, model, name) ** 2) for name in before)))


def _gone(before: Parameters, model: Parameters, name: str) -> FloatArray:
    """Return how far one tensor of a model went down, in float64."""
    here, there = (one[name].detach().cpu().numpy().astype(np.float64) for one in (before, model))
    return np.asarray(here - there)
