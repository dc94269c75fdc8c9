"""Who is asked to compute and report, where not everybody is: a draw, or the best of what is remembered.

Whoever is asked listens to the broadcast and computes, which costs joules whether he uploads or not. A policy
that compares reports can ask ``num_candidates`` devices alone. With a memory, the last report of a device
that was not asked stands in for a new one, and loses weight with every round.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedwave.errors import ConfigError
from fedwave.selection.candidates import Candidates, History, RoundResult
from fedwave.selection.policy import draw_devices
from fedwave.units import FloatArray, IntArray

LAST_REPORTED = "last_reported"  # in the policy's state: (n,), the round of each device's report; -1: never
AGEING = 0.9
EXPLORATION = 0.2


@dataclass(frozen=True)
class ComparesReports:
    """What policies share that choose by reports: whom they ask. A subclass says what it compares.

    ``num_candidates`` devices are asked, everybody by default; without a memory they are drawn. With
    ``remembers``, a share ``exploration`` of them (0.2, rounded up) are those not heard for longest, never
    heard first; then come the largest remembered values, each times ``ageing`` (0.9) for every round since
    its report; and if too few are remembered, the rest is drawn.
    """

    num_selected: int
    num_candidates: int | None = None
    remembers: bool = False
    ageing: float | None = None
    exploration: float | None = None
    needs_reports: bool = True

    def __post_init__(self) -> None:
        given: object = self.num_candidates
        is_whole = isinstance(given, int) and not isinstance(given, bool)
        if given is not None and (not is_whole or self.num_candidates < self.num_selected):  # type: ignore[operator]
            raise ConfigError(
                f"num_candidates must be a whole number >= num_selected = {self.num_selected}, "
                f"got {given!r}. The devices are chosen among the candidates; draw more of them."
            )
        if self.remembers:
            self._set_memory()
        elif self.ageing is not None or self.exploration is not None:
            name = "ageing" if self.ageing is not None else "exploration"
            raise ConfigError(
                f"{name} is about remembered reports, got {getattr(self, name)!r} without a memory. "
                "Set remembers = true, or leave it out."
            )

    def _set_memory(self) -> None:
        if self.num_candidates is None:
            raise ConfigError(
                "remembers needs num_candidates, got none: everybody reports in every round. Say how many "
                "devices to ask, or leave it out."
            )
        for name, default, least in (("ageing", AGEING, "above 0"), ("exploration", EXPLORATION, "from 0")):
            value = default if getattr(self, name) is None else getattr(self, name)
            if not 0.0 <= value <= 1.0 or (name == "ageing" and value == 0.0):
                raise ConfigError(f"{name} must be {least} to 1, got {value!r}. Its default is {default}.")
            object.__setattr__(self, name, float(value))

    def ask(self, candidates: Candidates, *, rng: np.random.Generator) -> IntArray:
        """Return who computes: everybody, a draw, or those that the memory speaks for."""
        if self.num_candidates is None:
            return candidates.device_index
        if not self.remembers:
            weights = self.chances(candidates)
            return draw_devices(candidates, self.num_candidates, rng=rng, weights=weights)
        return self._ask_remembered(candidates, min(self.num_candidates, len(candidates)), rng)

    def initial_state(self, num_devices: int) -> Mapping[str, NDArray[Any]]:
        """Return that nobody has reported yet, or nothing if nothing is remembered."""
        return {LAST_REPORTED: np.full(num_devices, -1, dtype=np.int64)} if self.remembers else {}

    def after(self, result: RoundResult) -> Mapping[str, NDArray[Any]]:
        """Return the state with the round of those that reported."""
        if not self.remembers:
            return {}
        last = result.state[LAST_REPORTED].copy()
        last[result.reported.device_index] = result.round_index
        return {LAST_REPORTED: last}

    def remembered(self, history: History) -> FloatArray:
        """Return what each device last reported of what this policy compares."""
        raise NotImplementedError

    def chances(self, candidates: Candidates) -> FloatArray | None:
        """Return each candidate's share in a draw, or None for equal chances."""
        del candidates
        return None

    def _ask_remembered(self, candidates: Candidates, count: int, rng: np.random.Generator) -> IntArray:
        assert self.ageing is not None  # __post_init__
        assert self.exploration is not None
        last = candidates.state[LAST_REPORTED][candidates.device_index]
        waiting = np.lexsort((rng.permutation(len(candidates)), last))  # longest first, equals in any order
        asked = np.zeros(len(candidates), dtype=bool)
        asked[waiting[: math.ceil(self.exploration * count)]] = True
        known = np.flatnonzero((last >= 0) & ~asked)
        age = candidates.round_index - last[known]
        score = self.remembered(candidates.history)[known] * self.ageing**age
        best = np.argsort(-score, kind="stable")[: count - int(asked.sum())]
        asked[known[best]] = True
        found = candidates.device_index[asked]
        if len(found) == count:
            return found
        unknown = candidates.among(candidates.device_index[~asked])  # whoever is known was asked
        drawn = draw_devices(unknown, count - len(found), rng=rng, weights=self.chances(unknown))
        return np.sort(np.concatenate([found, drawn]))
