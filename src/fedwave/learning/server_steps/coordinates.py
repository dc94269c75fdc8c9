"""A model made of many, number by number: what the median and the trimmed mean have in common."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from fedwave.learning.parameters import Parameters
from fedwave.learning.server_steps.mean import require_models
from fedwave.units import FloatArray

SORTED_AT_ONCE = 2**20  # numbers, some 8 MB in float64: what is made beside the models stays small

OfSorted = Callable[[Tensor, Tensor | None], Tensor]


def by_coordinate(
    models: Sequence[Parameters], weights: FloatArray | None, of_sorted: OfSorted
) -> Parameters:
    """Return the model whose every number ``of_sorted`` makes of those that the models have at its place.

    It is given float64 of shape (models, places), ascending along axis 0, and the weights of the models that
    they come from in the same order, or None; it returns one number for each place.
    """
    require_models(len(models), weights)
    size = max(1, SORTED_AT_ONCE // len(models))
    after: Parameters = {}
    for name, like in models[0].items():
        rows = [model[name].flatten() for model in models]
        numbers = torch.empty_like(rows[0])
        for first in range(0, like.numel(), size):
            block = torch.stack([row[first : first + size] for row in rows])
            numbers[first : first + size] = _of_block(block, weights, of_sorted)
        after[name] = numbers.reshape(like.shape)
    return after


def _of_block(values: Tensor, weights: FloatArray | None, of_sorted: OfSorted) -> Tensor:
    ascending, order = torch.sort(values.to(torch.float64), dim=0, stable=True)
    if weights is None:
        return of_sorted(ascending, None)
    return of_sorted(ascending, torch.as_tensor(weights, dtype=torch.float64, device=values.device)[order])
