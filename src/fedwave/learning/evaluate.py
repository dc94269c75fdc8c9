"""How well the global model serves unseen devices: adapt on the support set, test on the query set."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from fedwave.learning.losses import Batch, accuracy, cross_entropy
from fedwave.learning.models.base import Model
from fedwave.learning.parameters import Parameters, stack_copies, step, with_gradients


@dataclass(frozen=True)
class Evaluation:
    """Per-device results on the query sets after adaptation, each of shape (devices,)."""

    loss: Tensor
    accuracy: Tensor


def adapt(
    model: Model, parameters: Parameters, support: Batch, *, num_steps: int, inner_lr: float
) -> Parameters:
    """Return each device's own model after ``num_steps`` gradient steps on its support set, stacked."""
    adapted = stack_copies(parameters, support.labels.shape[0])
    for _ in range(num_steps):
        leaves = with_gradients(adapted)
        losses = cross_entropy(model.logits(leaves, support.inputs), support)
        gradients = torch.autograd.grad(losses.sum(), list(leaves.values()))
        with torch.no_grad():
            adapted = step(leaves, dict(zip(leaves, gradients, strict=True)), inner_lr)
    return adapted


def evaluate(
    model: Model, parameters: Parameters, support: Batch, query: Batch, *, num_steps: int, inner_lr: float
) -> Evaluation:
    """Return each device's query loss and accuracy after adapting the global model to it."""
    adapted = adapt(model, parameters, support, num_steps=num_steps, inner_lr=inner_lr)
    with torch.no_grad():
        logits = model.logits(adapted, query.inputs)
        return Evaluation(cross_entropy(logits, query), accuracy(logits, query))
