"""Initial weights as the paper's authors draw them."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from fedwave.memory import require_memory

BIAS = 0.1
WEIGHT_STD = 0.1


def truncated_normal(shape: tuple[int, ...], *, rng: np.random.Generator, std: float = WEIGHT_STD) -> Tensor:
    """Return a float32 tensor from N(0, std^2) truncated at two standard deviations, by redrawing."""
    require_memory(
        # The numbers while they are drawn; then weights, a gradient and a model of each chunk of devices.
        24 * math.prod(shape),
        what=f"a layer of shape {shape}",
        fix="Use fewer channels or units.",
    )
    values = rng.standard_normal(math.prod(shape))
    while True:
        outside = np.flatnonzero(np.abs(values) > 2.0)
        if outside.size == 0:
            return torch.from_numpy((std * values).astype(np.float32).reshape(shape))
        values[outside] = rng.standard_normal(outside.size)


def constant_bias(size: int) -> Tensor:
    """Return the initial bias of a layer."""
    return torch.full((size,), BIAS)
