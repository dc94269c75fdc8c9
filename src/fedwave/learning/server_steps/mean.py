"""The paper's server step: the plain mean of the received models, Eq. (6)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch

from fedwave.errors import ModelError
from fedwave.learning.parameters import Parameters
from fedwave.learning.server_steps.base import WithoutState
from fedwave.units import FloatArray


@dataclass(frozen=True)
class ServerMean(WithoutState):
    """theta^{k+1} is the mean of the received models, Eq. (6), weighted if the plan says so; no state."""

    needs_each_model: ClassVar[bool] = False

    def step(
        self,
        parameters: Parameters,
        models: Iterable[Parameters],
        weights: FloatArray | None,
        state: Parameters,
    ) -> tuple[Parameters, Parameters]:
        """Return the mean of the models."""
        del parameters
        return average(models, weights), state


def average(models: Iterable[Parameters], weights: FloatArray | None = None) -> Parameters:
    """Return the mean of the models, Eq. (6), summed in float64 in the order given; weighted if so wished.

    The models are taken one at a time, so a generator keeps only one of them in memory.
    """
    total: Parameters = {}
    like: Parameters = {}
    count = 0
    for model in models:
        like = model
        for name, value in model.items():
            term = value if weights is None else value.to(torch.float64) * float(weights[count])
            if name in total:
                total[name] += term
            else:
                total[name] = term.to(torch.float64, copy=True)
        count += 1
    require_models(count, weights)
    whole = count if weights is None else float(np.sum(weights))
    return {name: (value / whole).to(like[name].dtype) for name, value in total.items()}


def require_models(count: int, weights: FloatArray | None) -> None:
    """Raise unless there are models, and a weight for each if any has one."""
    if count == 0:
        raise ModelError(
            "A server step needs at least one model, got none. Keep the global model if none arrives."
        )
    if weights is not None and len(weights) != count:
        raise ModelError(f"A server step of {count} models needs as many weights, got {len(weights)}.")
