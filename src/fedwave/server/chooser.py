"""Asks a selection policy who computes and who uploads: the part that all planners share."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedwave.rng import Stream, generator
from fedwave.selection import Candidates, History, SelectionPolicy
from fedwave.server.memory import history_from_state, history_to_state, remember
from fedwave.server.planner import PlannerState
from fedwave.server.reports import Reports
from fedwave.units import IntArray


@dataclass(frozen=True, eq=False)
class Chooser:
    """A policy with the random numbers of a run and the devices that the server knows."""

    policy: SelectionPolicy
    num_samples: IntArray  # D_i of every device
    seed: int
    everyone_computes: bool = False  # also those that the policy will not choose, as Eq. (30) counts
    present: IntArray | None = None  # sorted: whom a server of real devices can reach; None: everybody

    @property
    def num_devices(self) -> int:
        """Number of devices n."""
        return len(self.num_samples)

    def initial_state(self) -> PlannerState:
        """Return an empty history."""
        return history_to_state(History.empty(self.num_devices))

    def ask(self, round_index: int, state: PlannerState) -> IntArray:
        """Return who computes: whom the policy asks, or everybody."""
        if self.everyone_computes:
            everybody = np.arange(self.num_devices, dtype=np.int64)
            return everybody if self.present is None else self.present
        return self._asked(round_index, history_from_state(state, self.num_devices))

    def select(self, round_index: int, reports: Reports, state: PlannerState) -> IntArray:
        """Return whom the policy lets upload, among those that it had asked and that have reported."""
        history = history_from_state(state, self.num_devices)
        have_reported = Candidates(
            device_index=reports.device_index,
            num_samples=reports.num_samples,
            history=history.of(reports.device_index),
            contribution=reports.contribution,
            loss=reports.loss,
        )
        # A generator of its own: a policy that draws twice must not meet the same numbers again.
        return self.policy.select(
            have_reported.among(self._asked(round_index, history)),
            rng=generator(self.seed, Stream.SELECTION, round_index, 1),
        )

    def state_after(
        self, round_index: int, reports: Reports, selected: IntArray, state: PlannerState
    ) -> PlannerState:
        """Return the history with this round in it."""
        history = history_from_state(state, self.num_devices)
        return history_to_state(remember(history, round_index, reports, selected))

    def _asked(self, round_index: int, history: History) -> IntArray:
        everybody = Candidates(
            device_index=np.arange(self.num_devices, dtype=np.int64),
            num_samples=self.num_samples,
            history=history,
        )
        candidates = everybody if self.present is None else everybody.among(self.present)
        return self.policy.ask(candidates, rng=generator(self.seed, Stream.SELECTION, round_index))
