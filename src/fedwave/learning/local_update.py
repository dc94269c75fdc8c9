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
from fedwave.learning.parameters import Parameters, norm, stack_copies
from fedwave.learning.rules.base import LocalRule, LocalStep
from fedwave.learning.tasks.base import Task


@dataclass(frozen=True)
class LocalUpdate:
    """The outcome for a stack of devices. Axis 0 is the device."""

    parameters: Parameters  # theta_i^{k, tau}, stacked
    gradient_norms: Tensor  # (devices, tau), the norm of the rule's gradient at each local step
    loss: Tensor  # (devices,), what the first step descends, at the global model
    secant: Secant | None = None  # None: it was not asked for


@dataclass(frozen=True)
class Secant:
    """How loss and gradient change from the global model to each local one: lower bounds of two constants."""

    loss_lipschitz: Tensor  # (devices,), rho_i = |F_i(w_i) - F_i(w)| / |w_i - w|
    smoothness: Tensor  # (devices,), beta_i = |grad F_i(w_i) - grad F_i(w)| / |w_i - w|


def local_update(
    model: Model,
    task: Task,
    rule: LocalRule,
    parameters: Parameters,
    support: Batch | None,
    queries: Sequence[Batch],
    *,
    measures_secant: bool = False,
) -> LocalUpdate:
    """Return the devices' local models after ``len(queries)`` steps from the global model, Eq. (2).

    ``queries`` holds D' of each local step. A rule that pools samples takes no ``support``. With
    ``measures_secant`` one gradient more is computed, at the local models on the first step's batch.
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
    steps, first = [], None
    for query in queries:
        outcome = rule.step(loss, local, support, query, start=start)
        if measures_secant and first is None:
            first = outcome
        local = outcome.parameters
        steps.append((outcome.gradient_norm, outcome.loss))
        del outcome  # its gradient is as large as the models
    secant = None
    if first is not None:
        secant = _secant(start, first, local, rule.step(loss, local, support, queries[0], start=start), rule)
    # Sec. III-B of the paper uploads theta^{k, tau-1}; Alg. 1 uploads theta^{k, tau}, so all steps count.
    return LocalUpdate(local, torch.stack([size for size, _ in steps], dim=1), steps[0][1], secant)


def _secant(
    start: Parameters, at_start: LocalStep, local: Parameters, at_local: LocalStep, rule: LocalRule
) -> Secant:
    """Return the change of loss and gradient over the distance gone; 0 for a model that stayed."""
    if at_start.gradient is None or at_local.gradient is None:
        raise ConfigError(
            f"measuring smoothness needs each step's gradient, got none from {type(rule).__name__}. Return "
            "LocalStep(..., gradient=...)."
        )
    with torch.no_grad():
        gone = norm({name: value - start[name] for name, value in local.items()}, is_stacked=True)
        change = {name: value - at_start.gradient[name] for name, value in at_local.gradient.items()}
        has_moved = gone > 0
        over = torch.where(has_moved, gone, torch.ones_like(gone))
        return Secant(
            torch.where(has_moved, (at_local.loss - at_start.loss).abs() / over, torch.zeros_like(gone)),
            torch.where(has_moved, norm(change, is_stacked=True) / over, torch.zeros_like(gone)),
        )
