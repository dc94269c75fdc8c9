"""What is known of a round when it is over: all that a column of the tables may be made of."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedwave.devices.base import HeldOutResult
from fedwave.learning.tasks import Metric
from fedwave.simulation.ledger import Ledger, RoundCosts, UploadLinks
from fedwave.simulation.round import RoundEvents
from fedwave.units import FloatArray, IntArray
from fedwave.wireless.delivery import UploadFate


@dataclass(frozen=True, kw_only=True, eq=False)
class Facts:
    """All that a column may be made of."""

    events: RoundEvents
    heldout: HeldOutResult | None
    ledger: Ledger | None  # after the round
    device_ids: IntArray  # of all training devices
    turning_point: FloatArray  # of all training devices
    metric: Metric
    wall_time_s: float

    @property
    def costs(self) -> RoundCosts:
        """What the round cost; only columns of a cell ask for it."""
        assert self.events.outcome.costs is not None
        return self.events.outcome.costs

    @property
    def links(self) -> UploadLinks:
        """The links of the round's uploads; only columns of a cell ask for them."""
        assert self.costs.links is not None
        return self.costs.links

    @property
    def first_norms(self) -> FloatArray:
        """The gradient norms at the global model, of the devices that computed."""
        return self.events.reports.gradient_norms[:, 0]

    def spread(self, values: NDArray[Any], fill: float = math.nan) -> NDArray[Any]:
        """Return a column of the reporting devices as one of all devices."""
        full = np.full(len(self.device_ids), fill, dtype=np.float64)
        full[self.events.reports.device_index] = values
        return full

    def mask(self, device_index: IntArray) -> IntArray:
        """Return 1 for these devices and 0 for the others."""
        full = np.zeros(len(self.device_ids), dtype=np.int64)
        full[device_index] = 1
        return full

    def count(self, fate: UploadFate) -> int:
        """Return how many uploads met this fate."""
        return int(np.sum(self.events.outcome.fate == fate))
