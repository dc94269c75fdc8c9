"""What the server remembers of its devices, as arrays that a checkpoint can hold."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedwave.errors import RunError
from fedwave.selection import History
from fedwave.server.planner import PlannerState
from fedwave.server.reports import Reports
from fedwave.units import IntArray

_PREFIX = "history."


def history_to_state(history: History) -> dict[str, NDArray[Any]]:
    """Return the history as arrays by name."""
    return {_PREFIX + field.name: getattr(history, field.name) for field in fields(history)}


def history_from_state(state: PlannerState, num_devices: int) -> History:
    """Return the history that a state holds."""
    columns = {}
    for field in fields(History):
        values = state.get(_PREFIX + field.name)
        if values is None or values.shape != (num_devices,):
            raise RunError(
                f"the planner's state must hold {_PREFIX}{field.name} for {num_devices} devices, got "
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
