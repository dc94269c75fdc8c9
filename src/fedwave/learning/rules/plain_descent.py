"""The local step of FedAvg: descend the loss itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch

from fedwave.learning.batch import Batch
from fedwave.learning.objective import Loss, loss_and_gradient
from fedwave.learning.parameters import Parameters, norm, step, with_gradients
from fedwave.learning.rules.base import LocalStep


@dataclass(frozen=True)
class PlainDescent:
    """theta <- theta - beta grad f(theta; D and D' together), as in FedAvg."""

    meta_lr: float  # beta
    pools_samples: ClassVar[bool] = True
    is_plain_step: ClassVar[bool] = True  # by meta_lr times the gradient whose norm is told

    def step(
        self, loss: Loss, parameters: Parameters, support: Batch | None, query: Batch, *, start: Parameters
    ) -> LocalStep:
        """Return the stacked models after one step down their gradients on ``query``."""
        del support, start  # the support samples are part of the query
        value, gradient = loss_and_gradient(loss, with_gradients(parameters), query)
        with torch.no_grad():
            after, size = step(parameters, gradient, self.meta_lr), norm(gradient, is_stacked=True)
            return LocalStep(after, size, value, gradient)
