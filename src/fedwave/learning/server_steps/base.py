"""What a server step is: received models and state in, the next global model and state out."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from fedwave.learning.parameters import Parameters
from fedwave.units import FloatArray


class ServerStep(Protocol):
    """Makes the next global model. What it must remember is handed in and out, and kept in checkpoints."""

    @property
    def needs_each_model(self) -> bool:
        """Whether the mean of the models, all that secure aggregation gives, would not do in their place."""
        ...

    def initial_state(self, parameters: Parameters) -> Parameters:
        """Return the state before the first round, given theta^0: an empty dict if there is none."""
        ...

    def step(
        self,
        parameters: Parameters,
        models: Iterable[Parameters],
        weights: FloatArray | None,
        state: Parameters,
    ) -> tuple[Parameters, Parameters]:
        """Return the next global model and state; ``models`` has one or more and is read once, in order.

        ``weights`` has a positive number for each model, on any scale; None: all weigh the same.
        """
        ...


class WithoutState:
    """A server step that remembers nothing; subclass it."""

    def initial_state(self, parameters: Parameters) -> Parameters:
        """Return no state."""
        del parameters
        return {}
