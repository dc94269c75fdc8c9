"""How well the global model serves unseen devices: adapt on the support set, measure on the query set."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from fedwave.learning.batch import Batch
from fedwave.learning.models.base import Model
from fedwave.learning.objective import loss_and_gradient, objective
from fedwave.learning.parameters import Parameters, stack_copies, step, with_gradients
from fedwave.learning.tasks.base import Task


@dataclass(frozen=True)
class Evaluation:
    """Per-device results on the query sets after adaptation, each of shape (devices,)."""

    loss: Tensor
    metric: Tensor  # the task's metric, float64


def adapt(
    model: Model, task: Task, parameters: Parameters, support: Batch, *, num_steps: int, inner_lr: float
) -> Parameters:
    """Return each device's own model after ``num_steps`` gradient steps on its support set, stacked."""
    loss = objective(model, task)
    adapted = stack_copies(parameters, support.num_devices)
    for _ in range(num_steps):
        _, gradient = loss_and_gradient(loss, with_gradients(adapted), support)
        with torch.no_grad():
            adapted = step(adapted, gradient, inner_lr)
    return adapted


def evaluate(
    model: Model,
    task: Task,
    parameters: Parameters,
    support: Batch,
    query: Batch,
    *,
    num_steps: int,
    inner_lr: float,
) -> Evaluation:
    """Return each device's query loss and metric after adapting the global model to it."""
    adapted = adapt(model, task, parameters, support, num_steps=num_steps, inner_lr=inner_lr)
    with torch.no_grad():
        outputs = model.outputs(adapted, query.inputs)
        return Evaluation(task.loss(outputs, query), _mean_score(task.scores(outputs, query), query))


def _mean_score(scores: Tensor, batch: Batch) -> Tensor:
    """Return the mean over each device's real samples; of right and wrong answers it is exactly a share."""
    is_real = batch.weights > 0
    total = torch.where(is_real, scores.to(torch.float64), 0.0).sum(1)
    return total / is_real.sum(1)
