"""Oort (Lai et al., OSDI 2021, arXiv 2010.06081) in one file: a policy with a state of its own, for tests.

A device's worth is its last loss times its samples, more for those not asked for long, less for those that
took longer than ``preferred_s``; a share of each round goes to devices that were never tried.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedwave.selection import Candidates, RoundResult
from fedwave.selection.top_contribution import largest
from fedwave.units import IntArray


@dataclass(frozen=True)
class Oort:
    """Ask the devices that promise most for their time; all that are asked upload."""

    num_selected: int
    needs_reports: bool = False
    exploration: float = 0.9
    decay: float = 0.98
    preferred_s: float = 1.0
    penalty: float = 2.0

    def initial_state(self, num_devices: int) -> Mapping[str, NDArray[Any]]:
        return {
            "utility": np.zeros(num_devices),
            "duration_s": np.full(num_devices, np.nan),
            "last_round": np.full(num_devices, -1, dtype=np.int64),
            "exploration": np.array([self.exploration]),
        }

    def ask(self, candidates: Candidates, *, rng: np.random.Generator) -> IntArray:
        state, who, k = candidates.state, candidates.device_index, candidates.round_index
        tried = state["last_round"][who] >= 0
        count = min(self.num_selected, len(who))
        explore = min(
            int((~tried).sum()), max(count - int(tried.sum()), int(count * state["exploration"][0]))
        )
        new = rng.choice(np.flatnonzero(~tried), explore, replace=False)
        last = np.maximum(state["last_round"][who], 0)
        worth = state["utility"][who] + np.sqrt(0.1 * math.log(k + 1) / (last + 1))
        slow = state["duration_s"][who] > self.preferred_s
        late = np.where(slow, self.preferred_s / np.where(slow, state["duration_s"][who], 1.0), 1.0)
        known = np.flatnonzero(tried)
        best = known[largest((worth * late**self.penalty)[known], min(count - explore, len(known)))]
        return np.sort(who[np.concatenate([new, best]).astype(np.int64)])

    def select(self, candidates: Candidates, *, rng: np.random.Generator) -> IntArray:
        return candidates.device_index

    def after(self, result: RoundResult) -> Mapping[str, NDArray[Any]]:
        state = {name: values.copy() for name, values in result.state.items()}
        who = result.reported.device_index
        assert result.reported.loss is not None
        state["utility"][who] = result.reported.num_samples * np.abs(result.reported.loss)
        state["last_round"][who] = result.round_index
        if result.busy_time_s is not None:
            state["duration_s"][who] = result.busy_time_s[who]
        state["exploration"] = np.maximum(state["exploration"] * self.decay, 0.2)
        return state
