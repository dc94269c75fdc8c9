"""What a local rule is: one step of a device's own model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

from fedwave.learning.batch import Batch
from fedwave.learning.objective import Loss
from fedwave.learning.parameters import Parameters


@dataclass(frozen=True)
class LocalStep:
    """The outcome of one local step for a stack of devices. Axis 0 is the device."""

    parameters: Parameters  # after the step, stacked
    gradient_norm: Tensor  # (devices,), the norm of the gradient that was descended
    loss: Tensor  # (devices,), what was descended, before the step
    gradient: Parameters | None = None  # itself, stacked; None: the rule does not tell it


class LocalRule(Protocol):
    """Moves the models of a stack of devices by one local step; remembers nothing."""

    @property
    def pools_samples(self) -> bool:
        """Whether a device's samples are all taken as query, as FedAvg does: then support is ``None``."""
        ...

    def step(
        self, loss: Loss, parameters: Parameters, support: Batch | None, query: Batch, *, start: Parameters
    ) -> LocalStep:
        """Return the stacked models after one step; ``loss(parameters, batch)`` has shape (devices,).

        ``start`` is the global model of the round, stacked as ``parameters`` are: one memory, seen by all.
        """
        ...
