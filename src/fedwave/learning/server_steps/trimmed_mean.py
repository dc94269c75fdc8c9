"""The coordinate-wise trimmed mean: of every number, the smallest and the largest few are left out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from fedwave.errors import ConfigError, require_count
from fedwave.learning.parameters import Parameters
from fedwave.learning.server_steps.base import WithoutState
from fedwave.learning.server_steps.coordinates import by_coordinate
from fedwave.units import FloatArray


@dataclass(frozen=True)
class ServerTrimmedMean(WithoutState):
    """Every number is the mean of the received ones without the b smallest and the b largest.

    Yin et al. 2018 (arXiv:1803.01498). With weights, b are left out by count and the others are weighted.
    With at most b liars every number lies between honest ones. Of 2 b models or fewer nothing is left: then
    the global model stays as it is.
    """

    num_trimmed: int = 1  # b, at each end
    max_models: int | None = None  # that a round can have, where it is known

    needs_each_model: ClassVar[bool] = True

    def __post_init__(self) -> None:
        require_count("num_trimmed", self.num_trimmed, at_least=1)
        least = 2 * self.num_trimmed + 1
        if self.max_models is not None and self.max_models < least:
            raise ConfigError(
                f"num_trimmed = {self.num_trimmed} needs {least} uploads in a round, got at most "
                f"{self.max_models}. Trim fewer models, or let more devices upload."
            )

    def step(
        self,
        parameters: Parameters,
        models: Iterable[Parameters],
        weights: FloatArray | None,
        state: Parameters,
    ) -> tuple[Parameters, Parameters]:
        """Return the trimmed mean of the models, all of which are in memory at once."""
        received = list(models)
        if 0 < len(received) <= 2 * self.num_trimmed:
            return parameters, state
        return by_coordinate(received, weights, self._mean_of_middle), state

    def _mean_of_middle(self, ascending: Tensor, weights: Tensor | None) -> Tensor:
        middle = slice(self.num_trimmed, len(ascending) - self.num_trimmed)
        if weights is None:
            return ascending[middle].mean(0)
        return (ascending[middle] * weights[middle]).sum(0) / weights[middle].sum(0)
