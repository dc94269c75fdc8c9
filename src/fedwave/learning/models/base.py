"""What the training loop asks of a model."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from torch import Tensor, nn

from fedwave.learning.parameters import Parameters


class Model(Protocol):
    """A network that runs many devices' copies of itself at once; a task says what the outputs mean."""

    def initial_parameters(self, rng: np.random.Generator) -> Parameters:
        """Return the first global model, theta^0."""
        ...

    def outputs(self, parameters: Parameters, inputs: Tensor) -> Tensor:
        """Return (devices, samples, outputs) of stacked ``parameters`` on stacked ``inputs``."""
        ...

    def to_module(self, parameters: Parameters) -> nn.Module:
        """Return one model as a plain ``nn.Module`` on inputs (samples, *shape), to deploy or to inspect."""
        ...

    def to_state_dict(self, parameters: Parameters) -> Parameters:
        """Return one model in the layout of ``to_module().state_dict()``, as in ``model.safetensors``."""
        ...

    def from_state_dict(self, state: Parameters) -> Parameters:
        """Return the model of which ``state`` is the state dict; refuse one that is not this network's."""
        ...
