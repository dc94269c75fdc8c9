"""The paper's server step: the plain mean of the received models, Eq. (6)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch

from fedwave.errors import ModelError
from fedwave.learning.parameters import Parameters


@dataclass(frozen=True)
class ServerMean:
    """theta^{k+1} is the mean of the received models, Eq. (6). It has no state."""

    def initial_state(self, parameters: Parameters) -> Parameters:
        """Return no state."""
        del parameters
        return {}

    def step(
        self, parameters: Parameters, models: Iterable[Parameters], state: Parameters
    ) -> tuple[Parameters, Parameters]:
        """Return the mean of the models."""
        del parameters
        return average(models), state


def average(models: Iterable[Parameters]) -> Parameters:
    """Return the mean of the models, Eq. (6), summed in float64 in the order given.

    The models are taken one at a time, so a generator keeps only one of them in memory.
    """
    total: Parameters = {}
    like: Parameters = {}
    count = 0
    for model in models:
        count += 1
        like = model
        for name, value in model.items():
            if name in total:
                total[name] += value
            else:
                total[name] = value.to(torch.float64, copy=True)
    if count == 0:
        raise ModelError("A mean needs at least one model, got none. Keep the global model if none arrives.")
    return {name: (value / count).to(like[name].dtype) for name, value in total.items()}
