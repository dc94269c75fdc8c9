"""A model as torch has it, and as arrays by name: the server's side, and nodes that compute with torch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from fedwave.flower.messages import NamedArrays
from fedwave.learning import Parameters


def to_parameters(arrays: Mapping[str, NDArray[Any]]) -> Parameters:
    """Return a model as torch has it, sorted by name as in a run: the order of a sum decides its bits."""
    return {name: torch.from_numpy(np.array(arrays[name])) for name in sorted(arrays)}


def from_parameters(parameters: Parameters) -> NamedArrays:
    """Return a torch model's arrays."""
    return {name: value.detach().cpu().numpy() for name, value in parameters.items()}
