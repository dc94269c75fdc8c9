"""A local rule of one's own with an option: FedProx's step, its gradient no longer than ``max_norm``.

``clipped.toml`` names it. The package has FedProx: ``algorithm.rule = { kind = "fedprox", mu = 0.1 }``
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from fedwave.learning import Batch, LocalStep, Parameters
from fedwave.learning.objective import Loss, loss_and_gradient
from fedwave.learning.parameters import norm, step, with_gradients


@dataclass(frozen=True)
class ClippedProx:
    """Descend f + mu / 2 |theta - theta^k|^2 (Li et al., arXiv:1812.06127), ``max_norm`` at most."""

    meta_lr: float  # filled in from algorithm.meta_lr; the others are options
    mu: float = 0.01
    max_norm: float = 1.0
    pools_samples: ClassVar[bool] = True  # all samples of a device come as query

    def step(
        self, loss: Loss, parameters: Parameters, support: Batch | None, query: Batch, *, start: Parameters
    ) -> LocalStep:
        """Return the stacked models after one step, the norms before clipping, and the losses."""
        del support

        def proximal(own: Parameters, batch: Batch) -> Tensor:
            squares = [(value - start[name]).square().flatten(1).sum(1) for name, value in own.items()]
            return loss(own, batch) + 0.5 * self.mu * torch.stack(squares).sum(0)

        value, gradient = loss_and_gradient(proximal, with_gradients(parameters), query)
        with torch.no_grad():
            length = norm(gradient, is_stacked=True)  # one for each device
            share = (self.max_norm / length.clamp(min=1e-12)).clamp(max=1.0)
            clipped = {name: one * share.view(-1, *[1] * (one.dim() - 1)) for name, one in gradient.items()}
            return LocalStep(step(parameters, clipped, self.meta_lr), length, value)
