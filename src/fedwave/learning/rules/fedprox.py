"""The local step of FedProx: descend the loss and stay near the global model.

T. Li, A. K. Sahu, M. Zaheer, M. Sanjabi, A. Talwalkar and V. Smith, "Federated Optimization in Heterogeneous
Networks", MLSys 2020 (arXiv:1812.06127), Algorithm 2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from fedwave.errors import ConfigError
from fedwave.learning.batch import Batch
from fedwave.learning.objective import Loss
from fedwave.learning.parameters import Parameters
from fedwave.learning.rules.base import LocalStep
from fedwave.learning.rules.plain_descent import PlainDescent


@dataclass(frozen=True)
class FedProx:
    """theta <- theta - beta grad h(theta), h(theta) = f(theta; D and D') + mu / 2 |theta - theta^k|^2.

    The paper lets a device solve for a minimum of h as well as it can; here it takes tau gradient steps. With
    ``mu`` = 0 it is FedAvg's ``PlainDescent``.
    """

    meta_lr: float  # beta
    mu: float = 0.01  # the paper tunes it to each dataset, among 0.001, 0.01, 0.1 and 1
    pools_samples: ClassVar[bool] = True
    is_plain_step: ClassVar[bool] = True  # by meta_lr times the gradient whose norm is told

    def __post_init__(self) -> None:
        if not (math.isfinite(self.mu) and self.mu >= 0):
            raise ConfigError(f"mu must be >= 0, got {self.mu}. The paper takes 0.001 to 1; 0 is FedAvg.")

    def step(
        self, loss: Loss, parameters: Parameters, support: Batch | None, query: Batch, *, start: Parameters
    ) -> LocalStep:
        """Return the stacked models after one step down h, which is also the loss that is told."""

        def proximal(own: Parameters, batch: Batch) -> Tensor:
            squares = [(value - start[name]).square().flatten(1).sum(1) for name, value in own.items()]
            return loss(own, batch) + 0.5 * self.mu * torch.stack(squares).sum(0)

        return PlainDescent(self.meta_lr).step(proximal, parameters, support, query, start=start)
