"""What a device descends: the loss of its model on its task, and the gradient of such a loss."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from fedwave.learning.batch import Batch
from fedwave.learning.models.base import Model
from fedwave.learning.parameters import Parameters
from fedwave.learning.tasks.base import Task

# Parameters and a batch in, the loss out: a scalar, or one entry for each device of a stack.
Loss = Callable[[Parameters, Any], Tensor]


def objective(model: Model, task: Task) -> Loss:
    """Return f(theta; D) of Eq. (1): stacked parameters and a batch in, one loss for each device out."""

    def loss(parameters: Parameters, batch: Batch) -> Tensor:
        outputs = model.outputs(parameters, batch.inputs)
        return task.loss(outputs.to(batch.weights.dtype), batch)  # of products in bfloat16: back to float32

    return loss


def loss_and_gradient(
    loss: Loss, theta: Parameters, batch: Any, *, create_graph: bool = False
) -> tuple[Tensor, Parameters]:
    """Return the loss at the leaves ``theta`` and its gradient, zero for a parameter that it ignores."""
    value = loss(theta, batch)
    gradients = torch.autograd.grad(
        value.sum(),
        list(theta.values()),
        create_graph=create_graph,
        allow_unused=True,
        materialize_grads=True,
    )
    return value.detach(), dict(zip(theta, gradients, strict=True))
