"""Runs a selection policy: asks it who computes and who uploads, and keeps what is to be remembered.

All planners share it. The server's memory of its devices, a ``History``, and a policy's own state are arrays
by name in the planner's state, ``history.*`` and ``policy.*``, so that a checkpoint holds them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedwave.errors import ProblemError, RunError
from fedwave.rng import Stream, generator
from fedwave.selection import (
    Candidates,
    DrawsCandidates,
    History,
    KeepsState,
    RoundResult,
    SelectionPolicy,
)
from fedwave.server.outcome import Outcome
from fedwave.server.planner import PlannerState
from fedwave.server.reports import Reports
from fedwave.units import IntArray

HISTORY, OWN = "history.", "policy."  # before the names of a device's history, and of a policy's own state


@dataclass(frozen=True, eq=False)
class PolicyRunner:
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

    @property
    def max_models(self) -> int:
        """As many as may be asked for: the selected ones, or all candidates of a policy with a short list."""
        policy = self.policy
        num_candidates = policy.num_candidates if isinstance(policy, DrawsCandidates) else None
        return max(policy.num_selected, num_candidates or 0)

    def initial_state(self) -> PlannerState:
        """Return an empty history, and the policy's own first state if it has one."""
        return {**history_to_state(History.empty(self.num_devices)), **self._first_own_state()}

    def ask(self, round_index: int, state: PlannerState) -> IntArray:
        """Return who computes: whom the policy asks, or everybody."""
        if self.everyone_computes:
            everybody = np.arange(self.num_devices, dtype=np.int64)
            return everybody if self.present is None else self.present
        return self._asked_by_policy(round_index, state)

    def select(self, round_index: int, asked: IntArray, reports: Reports, state: PlannerState) -> IntArray:
        """Return whom the policy lets upload, among those that it had asked and that have reported."""
        if self.everyone_computes:  # the policy was not asked yet
            asked = self._asked_by_policy(round_index, state)
        # A generator of its own: a policy that draws twice must not meet the same numbers again.
        return self.policy.select(
            self._reported(round_index, reports, state).among(asked),
            rng=generator(self.seed, Stream.SELECTION, round_index, 1),
        )

    def after(
        self, round_index: int, reports: Reports, selected: IntArray, outcome: Outcome, state: PlannerState
    ) -> PlannerState:
        """Return the state with this round in it; entries of other parts are kept as they are."""
        history = history_from_state(state, self.num_devices)
        remembered = history_to_state(remember(history, round_index, reports, selected))
        own = self._own_state_after(round_index, reports, selected, outcome, state)
        return {**state, **remembered, **own}

    def _asked_by_policy(self, round_index: int, state: PlannerState) -> IntArray:
        everybody = Candidates(
            device_index=np.arange(self.num_devices, dtype=np.int64),
            num_samples=self.num_samples,
            history=history_from_state(state, self.num_devices),
            round_index=round_index,
            state=_own_state(state),
        )
        candidates = everybody if self.present is None else everybody.among(self.present)
        return self.policy.ask(candidates, rng=generator(self.seed, Stream.SELECTION, round_index))

    def _reported(self, round_index: int, reports: Reports, state: PlannerState) -> Candidates:
        return Candidates(
            device_index=reports.device_index,
            num_samples=reports.num_samples,
            history=history_from_state(state, self.num_devices).of(reports.device_index),
            contribution=reports.contribution,
            loss=reports.loss,
            round_index=round_index,
            state=_own_state(state),
        )

    def _first_own_state(self) -> PlannerState:
        if not isinstance(self.policy, KeepsState):
            return {}
        first = self.policy.initial_state(self.num_devices)
        return {OWN + name: np.asarray(values) for name, values in first.items()}

    def _own_state_after(
        self, round_index: int, reports: Reports, selected: IntArray, outcome: Outcome, state: PlannerState
    ) -> PlannerState:
        if not isinstance(self.policy, KeepsState):
            return {}
        costs = outcome.costs
        result = RoundResult(
            round_index=round_index,
            reported=self._reported(round_index, reports, state),
            selected=selected,
            received=outcome.received,
            busy_time_s=None if costs is None else costs.busy_time_s,
            energy_j=None if costs is None else costs.device_energy_j,
            delay_s=None if costs is None else costs.delay_s,
        )
        after = {OWN + name: np.asarray(values) for name, values in self.policy.after(result).items()}
        before = {name: values for name, values in state.items() if name.startswith(OWN)}
        if _kinds(after) != _kinds(before):
            raise ProblemError(
                f"{type(self.policy).__name__}.after must return arrays of the names, shapes and types of "
                f"initial_state, {_kinds(before)}, got {_kinds(after)}. A run could not be resumed."
            )
        return after


def _own_state(state: PlannerState) -> Mapping[str, NDArray[Any]]:
    return {name.removeprefix(OWN): values for name, values in state.items() if name.startswith(OWN)}


def _kinds(state: PlannerState) -> dict[str, str]:
    """Return the type and shape of each array of a policy's state, by the policy's own names."""
    found = sorted(_own_state(state).items())
    return {name: f"{values.dtype}{list(values.shape)}" for name, values in found}


def history_to_state(history: History) -> dict[str, NDArray[Any]]:
    """Return the history as arrays by name."""
    return {HISTORY + field.name: getattr(history, field.name) for field in fields(history)}


def history_from_state(state: PlannerState, num_devices: int) -> History:
    """Return the history that a state holds."""
    columns = {}
    for field in fields(History):
        values = state.get(HISTORY + field.name)
        if values is None or values.shape != (num_devices,):
            raise RunError(
                f"the planner's state must hold {HISTORY}{field.name} for {num_devices} devices, got "
                f"{None if values is None else values.shape}. It belongs to another run or planner."
            )
        columns[field.name] = np.asarray(values)
    return History(**columns)


def remember(history: History, round_index: int, reports: Reports, selected: IntArray) -> History:
    """Return the history after a round."""
    last_contribution, last_loss = history.last_contribution.copy(), history.last_loss.copy()
    last_contribution[reports.device_index] = reports.contribution
    last_loss[reports.device_index] = reports.loss
    times_selected, last_selected = history.times_selected.copy(), history.last_selected.copy()
    times_selected[selected] += 1
    last_selected[selected] = round_index
    return replace(
        history,
        times_selected=times_selected,
        last_selected=last_selected,
        last_contribution=last_contribution,
        last_loss=last_loss,
    )
