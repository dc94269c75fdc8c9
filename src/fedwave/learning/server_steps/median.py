"""The coordinate-wise median of the received models: fewer than half of the devices cannot pull it away."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from fedwave.learning.parameters import Parameters
from fedwave.learning.server_steps.base import WithoutState
from fedwave.learning.server_steps.coordinates import by_coordinate
from fedwave.units import FloatArray

ROUNDING = 1e-9  # relative: equal weights make two equal halves, however their sums are rounded


@dataclass(frozen=True)
class ServerMedian(WithoutState):
    """Every number of the next global model is the median of the received ones.

    Yin et al. 2018 (arXiv:1803.01498). With weights it is the weighted median: half of the weight lies on
    either side. As long as liars have less than half of the weight, every number lies between honest ones.
    """

    needs_each_model: ClassVar[bool] = True

    def step(
        self,
        parameters: Parameters,
        models: Iterable[Parameters],
        weights: FloatArray | None,
        state: Parameters,
    ) -> tuple[Parameters, Parameters]:
        """Return the median of the models, all of which are in memory at once."""
        del parameters
        return by_coordinate(list(models), weights, _median), state


def _median(ascending: Tensor, weights: Tensor | None) -> Tensor:
    """Return the middle value, or the mean of the middle two."""
    if weights is None:
        count = len(ascending)
        return (ascending[(count - 1) // 2] + ascending[count // 2]) / 2
    up_to = weights.cumsum(0)
    half = up_to[-1] / 2
    lower = (up_to < half * (1 - ROUNDING)).sum(0, keepdim=True)
    upper = (up_to <= half * (1 + ROUNDING)).sum(0, keepdim=True)
    return ((ascending.gather(0, lower) + ascending.gather(0, upper)) / 2)[0]
