"""What is known of a round when it is over: all that a column of the tables may be made of."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from fedwave.devices.base import HeldOutResult
from fedwave.metric import Metric
from fedwave.server import BatteryReport, Outcome, Plan, PlannerState, Reports, RoundCosts, UploadLinks
from fedwave.simulation.ledger import Ledger
from fedwave.units import FloatArray, IntArray
from fedwave.wireless.delivery import UploadFate

if TYPE_CHECKING:  # torch stands behind it; tables are read without
    from fedwave.simulation.penalties import PenaltyState

# What a run may have beyond learning: a cell, batteries, gains or penalties that are estimated, local steps
# that are chosen round by round, and an access with other than one block for each device.
Trait = Literal["cell", "battery", "estimation", "penalties", "steps", "access"]


@dataclass(frozen=True, kw_only=True, eq=False)
class RunFrame:
    """What the tables say alike in all rounds of a run."""

    device_ids: IntArray  # of all training devices
    metric: Metric
    turning_point: FloatArray | None = None  # of all training devices; None: the penalties are not known
    traits: frozenset[Trait] = frozenset()  # that decide which columns there are


@dataclass(frozen=True, kw_only=True, eq=False)
class RoundFacts:
    """What happened in a round, from its reports to its evaluation."""

    round_index: int
    reports: Reports
    plan: Plan
    outcome: Outcome
    ledger: Ledger | None = None  # after the round; None where nothing is counted
    update_norm: float | None = None  # of the global model's change; None where it is not known yet
    heldout: HeldOutResult | None = None  # None in rounds without evaluation
    training: HeldOutResult | None = None  # likewise of all training devices; None where it is not asked for
    penalties: PenaltyState | None = None  # of this round; None where they never change
    local_steps: PlannerState = field(default_factory=dict)  # after the round; empty where tau is fixed
    wall_time_s: float = math.nan
    frame: RunFrame | None = None  # the run that the tables are of

    @property
    def run(self) -> RunFrame:
        """The run that the tables are of; only columns ask for it."""
        assert self.frame is not None
        return self.frame

    @property
    def costs(self) -> RoundCosts:
        """What the round cost; only columns of a cell ask for it."""
        assert self.outcome.costs is not None
        return self.outcome.costs

    @property
    def links(self) -> UploadLinks:
        """The links of the round's uploads; only columns of a cell ask for them."""
        assert self.costs.links is not None
        return self.costs.links

    @property
    def battery(self) -> BatteryReport:
        """The batteries after the round; only columns of runs on batteries ask for them."""
        assert self.outcome.battery is not None
        return self.outcome.battery

    @property
    def first_norms(self) -> FloatArray:
        """The gradient norms at the global model, of the devices that computed."""
        return self.reports.gradient_norms[:, 0]

    def spread(self, values: NDArray[Any], fill: float = math.nan) -> NDArray[Any]:
        """Return a column of the reporting devices as one of all devices."""
        full = np.full(len(self.run.device_ids), fill, dtype=np.float64)
        full[self.reports.device_index] = values
        return full

    def mask(self, device_index: IntArray) -> IntArray:
        """Return 1 for these devices and 0 for the others."""
        full = np.zeros(len(self.run.device_ids), dtype=np.int64)
        full[device_index] = 1
        return full

    def count(self, fate: UploadFate) -> int:
        """Return how many uploads met this fate."""
        return int(np.sum(self.outcome.fate == fate))
