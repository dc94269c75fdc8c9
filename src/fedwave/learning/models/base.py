"""What the training loop asks of a model."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from torch import Tensor, nn

from fedwave.learning.parameters import Parameters


class Model(Protocol):
    """A classifier that runs many devices' copies of itself at once."""

    def initial_parameters(self, rng: np.random.Generator) -> Parameters:
        """Return the first global model, theta^0."""
        ...

    def logits(self, parameters: Parameters, inputs: Tensor) -> Tensor:
        """Return class scores (devices, samples, classes) of stacked ``parameters`` on stacked ``inputs``."""
        ...

    def to_module(self, parameters: Parameters) -> nn.Module:
        """Return one model as a plain ``nn.Module`` on inputs (samples, *shape), to deploy or to inspect."""
        ...

    def to_state_dict(self, parameters: Parameters) -> Parameters:
        """Return one model in the layout of ``to_module().state_dict()``, as in ``model.safetensors``."""
        ...
