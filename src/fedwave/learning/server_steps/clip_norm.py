"""Norm clipping: no device moves the global model further than a given length, or than the median device."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import torch

from fedwave.errors import ConfigError
from fedwave.learning.parameters import Parameters
from fedwave.learning.server_steps.base import WithoutState
from fedwave.learning.server_steps.mean import average
from fedwave.units import FloatArray


@dataclass(frozen=True)
class ServerClipNorm(WithoutState):
    """The mean of the received models, each first drawn towards theta until ||theta_i - theta|| <= max_norm.

    Sun et al. 2019 (arXiv:1911.07963) clip at a given length, which then is the most that a round moves the
    model. "median" clips at the median length of the round, whatever the weights: as long as fewer than half
    of the devices lie, a round moves the model by no more than the longest honest change.
    """

    max_norm: float | Literal["median"] = "median"

    needs_each_model: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.max_norm == "median":
            return
        if isinstance(self.max_norm, str) or not 0.0 < self.max_norm < math.inf:
            raise ConfigError(
                f'max_norm must be positive and finite, or "median", got {self.max_norm!r}. Look at the '
                "lengths of honest changes, meta_lr times the gradient norms."
            )

    def step(
        self,
        parameters: Parameters,
        models: Iterable[Parameters],
        weights: FloatArray | None,
        state: Parameters,
    ) -> tuple[Parameters, Parameters]:
        """Return the mean of the clipped models; "median" has all of them in memory at once."""
        if isinstance(self.max_norm, str):
            models = list(models)
            lengths = [_length(_change(parameters, own)) for own in models]
            max_norm = float(np.median(lengths)) if lengths else 0.0
        else:
            max_norm = self.max_norm
        mean = average((_clipped(parameters, own, max_norm) for own in models), weights)
        return {name: value.to(parameters[name].dtype) for name, value in mean.items()}, state


def _clipped(start: Parameters, model: Parameters, max_norm: float) -> Parameters:
    """Return the model itself if it is near enough, else the nearest one in its direction, in float64."""
    change = _change(start, model)
    length = _length(change)
    if length <= max_norm:
        return model
    return {name: start[name] + value * (max_norm / length) for name, value in change.items()}


def _change(start: Parameters, model: Parameters) -> Parameters:
    return {name: value.to(torch.float64) - start[name] for name, value in model.items()}


def _length(change: Parameters) -> float:
    """Return the Euclidean norm; numpy sums in one order, torch in one for each number of threads."""
    return math.sqrt(sum(float(np.sum(np.square(value.cpu().numpy()))) for value in change.values()))
