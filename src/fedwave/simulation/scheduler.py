"""Who computes and who uploads in a round. Without a radio cell, a selection policy decides both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from fedwave.rng import Stream, generator
from fedwave.selection import SelectionPolicy
from fedwave.simulation.ledger import RoundCosts
from fedwave.units import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Reports:
    """What the computing devices tell the server before anyone uploads. Axis 0 follows ``positions``."""

    positions: IntArray
    contribution: FloatArray


@dataclass(frozen=True, eq=False)
class Schedule:
    """The server's decision, as positions in the pool of training devices."""

    selected: IntArray  # those that upload, sorted
    received: IntArray  # those whose model arrives and enters the mean, sorted
    costs: RoundCosts | None = None  # None without a radio cell
    round_columns: Mapping[str, Any] = field(default_factory=dict)  # what the decision adds to rounds.csv
    device_columns: Mapping[str, NDArray[Any]] = field(default_factory=dict)  # and to devices.csv


class Scheduler(Protocol):
    """Decides, round by round, who computes and who uploads."""

    def computing(self, round_index: int) -> IntArray:
        """Return the sorted positions of the devices that compute in this round."""
        ...

    def schedule(self, round_index: int, reports: Reports) -> Schedule:
        """Return who uploads, given what the computing devices report."""
        ...

    @property
    def max_models(self) -> int:
        """How many local models are worth keeping: those with the largest contributions."""
        ...


@dataclass(frozen=True)
class PolicyScheduler:
    """Lets a selection policy choose, as in Alg. 1, with an ideal network."""

    policy: SelectionPolicy
    num_devices: int
    num_selected: int
    seed: int

    @property
    def max_models(self) -> int:
        """Exactly the selected models are needed."""
        return self.num_selected

    def computing(self, round_index: int) -> IntArray:
        """Return everybody if the policy compares contributions, else only those it selects."""
        if self.policy.needs_contribution:
            return np.arange(self.num_devices, dtype=np.int64)
        return self.policy.select(self.num_devices, None, rng=self._rng(round_index))

    def schedule(self, round_index: int, reports: Reports) -> Schedule:
        """Return the policy's choice; every upload arrives."""
        if self.policy.needs_contribution:
            selected = self.policy.select(self.num_devices, reports.contribution, rng=self._rng(round_index))
        else:
            selected = reports.positions
        return Schedule(selected, selected)

    def _rng(self, round_index: int) -> np.random.Generator:
        return generator(self.seed, Stream.SELECTION, round_index)
