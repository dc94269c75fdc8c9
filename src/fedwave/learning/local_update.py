"""What one device does in a round: tau local steps and the norms of their gradients, Alg. 1 lines 3-10."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from fedwave.errors import ConfigError
from fedwave.learning.batch import Batch
from fedwave.learning.models.base import Model
from fedwave.learning.objective import objective
from fedwave.learning.parameters import Parameters, stack_copies
from fedwave.learning.rules.base import LocalRule
from fedwave.learning.tasks.base import Task


@dataclass(frozen=True)
class LocalUpdate:
    """The outcome for a stack of devices. Axis 0 is the device."""

    parameters: Parameters  # theta_i^{k, tau}, stacked
    gradient_norms: Tensor  # (devices, tau), the norm of the rule's gradient at each local step
    loss: Tensor  # (devices,), what the first step descends, at the global model


def local_update(
    model: Model,
    task: Task,
    rule: LocalRule,
    parameters: Parameters,
    support: Batch | None,
    queries: Sequence[Batch],
) -> LocalUpdate:
    """Return the devices' local models after ``len(queries)`` steps from the global model, Eq. (2).

    ``queries`` holds D' of each local step. A rule that pools samples takes no ``support``.
    """
    if not queries:
        raise ConfigError("local_update needs the batch of at least one local step, got none. Pass queries.")
    if rule.pools_samples != (support is None):
        takes = "no support batch, as it pools all samples" if rule.pools_samples else "a support batch"
        raise ConfigError(
            f"{type(rule).__name__} takes {takes}, got {'none' if support is None else 'one'}. "
            "Build the batches as the rule's pools_samples says."
        )
    loss = objective(model, task)
    local = start = stack_copies(parameters, queries[0].num_devices)
    steps = []
    for query in queries:
        outcome = rule.step(loss, local, support, query, start=start)
        local = outcome.parameters
        steps.append((outcome.gradient_norm, outcome.loss))
    # Sec. III-B of the paper uploads theta^{k, tau-1}; Alg. 1 uploads theta^{k, tau}, so all steps count.
    return LocalUpdate(local, torch.stack([norm for norm, _ in steps], dim=1), steps[0][1])
