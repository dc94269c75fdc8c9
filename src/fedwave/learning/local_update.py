"""What one device does in a round: tau meta-gradient steps and their norms, Eq. (2), Alg. 1 lines 3-10."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from fedwave.learning.losses import Batch, cross_entropy
from fedwave.learning.meta_gradient import meta_step
from fedwave.learning.models.base import Model
from fedwave.learning.parameters import Parameters, norm, stack_copies, step


@dataclass(frozen=True)
class LocalUpdate:
    """The outcome for a stack of devices. Axis 0 is the device."""

    parameters: Parameters  # theta_i^{k, tau}, stacked
    gradient_norms: Tensor  # (devices, tau), ||meta-gradient|| at each local step
    loss: Tensor  # (devices,), the query loss after adaptation at the global model


def local_update(
    model: Model,
    parameters: Parameters,
    support: Batch | None,
    queries: Sequence[Batch],
    *,
    inner_lr: float,
    meta_lr: float,
    method: str,
) -> LocalUpdate:
    """Return the devices' local models after ``len(queries)`` steps from the global model, Eq. (2).

    ``queries`` holds D' of each local step. Without ``support`` there is no inner step, which is FedAvg.
    """
    num_devices = queries[0].labels.shape[0]
    local = stack_copies(parameters, num_devices)
    norms = []
    first_loss = None

    def loss(params: Parameters, batch: Batch) -> Tensor:
        return cross_entropy(model.logits(params, batch.inputs), batch)

    for query in queries:
        outcome = meta_step(
            loss, local, support, query, inner_lr=0.0 if support is None else inner_lr, method=method
        )
        with torch.no_grad():
            norms.append(norm(outcome.gradient, is_stacked=True))
            local = step(local, outcome.gradient, meta_lr)
        first_loss = outcome.query_loss if first_loss is None else first_loss
    assert first_loss is not None
    # Sec. III-B of the paper uploads theta^{k, tau-1}; Alg. 1 uploads theta^{k, tau}, so all steps count.
    return LocalUpdate(local, torch.stack(norms, dim=1), first_loss)
