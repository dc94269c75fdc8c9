"""FedAvgM: the mean of the received models as a gradient that the server descends with momentum."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

import torch

from fedwave.errors import ConfigError
from fedwave.learning.parameters import Parameters, step
from fedwave.learning.server_steps.mean import average
from fedwave.units import FloatArray


@dataclass(frozen=True)
class ServerMomentum:
    """v <- momentum v + (theta - mean); theta <- theta - server_lr v (Hsu et al. 2019, arXiv:1909.06335).

    The state is the velocity v, one tensor for each parameter and of its type. Without momentum and at a rate
    of 1 the step is ``ServerMean``, up to rounding.
    """

    momentum: float = 0.9
    server_lr: float = 1.0

    needs_each_model: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not 0.0 <= self.momentum < 1.0:
            raise ConfigError(
                f"momentum must be at least 0 and below 1, got {self.momentum}. "
                "At 1 no old round is ever forgotten; use 0 for none."
            )
        if not 0.0 < self.server_lr < float("inf"):
            raise ConfigError(
                f"server_lr must be positive and finite, got {self.server_lr}. Use 1 to step to the mean."
            )

    def initial_state(self, parameters: Parameters) -> Parameters:
        """Return a velocity of zero."""
        return {name: torch.zeros_like(value) for name, value in parameters.items()}

    def step(
        self,
        parameters: Parameters,
        models: Iterable[Parameters],
        weights: FloatArray | None,
        state: Parameters,
    ) -> tuple[Parameters, Parameters]:
        """Return the global model and velocity after one step."""
        mean = average(models, weights)
        velocity = {
            name: self.momentum * state[name] + (value - mean[name]) for name, value in parameters.items()
        }
        return step(parameters, velocity, self.server_lr), velocity
