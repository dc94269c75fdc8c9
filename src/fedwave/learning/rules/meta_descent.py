"""The local step of Per-FedAvg and NUFM: descend the loss after adaptation, Eq. (2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch

from fedwave.learning.batch import Batch
from fedwave.learning.meta_gradient import meta_step, require_method
from fedwave.learning.objective import Loss
from fedwave.learning.parameters import Parameters, norm, step
from fedwave.learning.rules.base import LocalStep


@dataclass(frozen=True)
class MetaDescent:
    """theta <- theta - beta times the meta-gradient, Eq. (2) and (3)."""

    inner_lr: float  # alpha
    meta_lr: float  # beta
    method: str = "exact"  # of the meta-gradient
    has_query_hessian: bool = False  # D'' of Eq. (3) is the query set, not the support set
    pools_samples: ClassVar[bool] = False
    is_plain_step: ClassVar[bool] = True  # by meta_lr times the gradient whose norm is told

    def __post_init__(self) -> None:
        require_method(self.method)

    def step(
        self, loss: Loss, parameters: Parameters, support: Batch | None, query: Batch, *, start: Parameters
    ) -> LocalStep:
        """Return the stacked models after one step down their meta-gradients."""
        del start  # the step asks only where a model is, not where it comes from
        outcome = meta_step(
            loss,
            parameters,
            support,
            query,
            inner_lr=self.inner_lr,
            method=self.method,
            hessian_batch=query if self.has_query_hessian else None,
        )
        with torch.no_grad():
            return LocalStep(
                step(parameters, outcome.gradient, self.meta_lr),
                norm(outcome.gradient, is_stacked=True),
                outcome.query_loss,
                outcome.gradient,
            )
