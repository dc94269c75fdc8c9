"""The paper's channel: gains drawn uniformly, Table III."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from pydantic import model_validator

from fedwave.settings import NonNegativeFloat, PositiveFloat
from fedwave.units import FloatArray
from fedwave.wireless.channels.base import ChannelSection
from fedwave.wireless.sanity import gain_warnings


class UniformConfig(ChannelSection):
    """Gains drawn uniformly, one per device, as in the paper's simulation (Table III)."""

    kind: Literal["uniform"] = "uniform"
    low: NonNegativeFloat
    high: PositiveFloat

    @model_validator(mode="after")
    def _check_order(self) -> UniformConfig:
        if self.low > self.high:
            raise ValueError(f"low must not exceed high = {self.high:g}, got {self.low:g}. Swap them")
        return self

    def build(self, *, num_devices: int) -> UniformChannel:
        """Return the channel; nothing is drawn yet."""
        return UniformChannel(low=self.low, high=self.high, num_devices=num_devices)


@dataclass(frozen=True, eq=False, kw_only=True)
class UniformChannel:
    """A gain between ``low`` and ``high`` for each device, the same on all blocks."""

    low: float
    high: float
    num_devices: int
    large_scale: None = None
    ergodic_k_factor: None = None
    has_own_rounds: bool = False

    @property
    def warnings(self) -> tuple[str, ...]:
        """A gain above 1, which only a cell without units may have."""
        return gain_warnings(self.high, advice="If the cell has no units, set normalised = true.")

    def gain(self, round_index: int, *, rng: np.random.Generator) -> FloatArray:
        """Return h ~ U(low, high), shape (n,)."""
        del round_index
        return rng.uniform(self.low, self.high, self.num_devices)
