"""Oort's participant selection, as a policy with a state of its own; ``oort.toml`` names it.

F. Lai, X. Zhu, H. V. Madhyastha and M. Chowdhury, "Oort: Efficient Federated Learning via Guided Participant
Selection", OSDI 2021 (arXiv:2010.06081), Algorithm 1 and Eq. (1). Simplified: the sum of squared losses of a
device's samples is taken from its mean loss, the preferred duration is a setting and not paced, new devices
are drawn evenly and not by speed, and nobody is excluded after many rounds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedwave.selection import Candidates, RoundResult
from fedwave.units import FloatArray, IntArray

STALENESS = 0.1  # the paper's weight of the time since a device was last heard
CLIP = 0.95  # larger utilities than this quantile are cut: they are outliers


@dataclass(frozen=True)
class Oort:
    """Exploit devices of high utility, explore those never tried, and ask nobody else to compute."""

    num_selected: int
    exploration: float = 0.9  # share of devices never tried, in the first round
    exploration_decay: float = 0.98  # of that share, in each round
    min_exploration: float = 0.2
    preferred_duration_s: float = float("inf")  # the paper's T; slower devices lose utility
    slow_penalty: float = 2.0  # the paper's alpha
    cut_off: float = 0.95  # the paper's c: who has less of the k-th largest utility is not drawn
    needs_reports: bool = False  # what is reported counts from the next round on

    def initial_state(self, num_devices: int) -> Mapping[str, NDArray[Any]]:
        """Return the state before the first round: nobody was tried."""
        return {
            "utility": np.zeros(num_devices),  # statistical: |B| sqrt(mean of squared losses)
            "duration_s": np.zeros(num_devices),  # of the device's last round; 0 where none is counted
            "last_round": np.full(num_devices, -1, dtype=np.int64),  # -1: never tried
        }

    def ask(self, candidates: Candidates, *, rng: np.random.Generator) -> IntArray:
        """Return who computes and uploads: some by utility, some new ones."""
        index = candidates.device_index
        is_new = candidates.state["last_round"][index] < 0
        known, new = np.flatnonzero(~is_new), np.flatnonzero(is_new)
        count = min(self.num_selected, len(index))
        share = max(self.exploration * self.exploration_decay**candidates.round_index, self.min_exploration)
        num_new = min(len(new), max(round(share * count), count - len(known)))
        explored = rng.choice(new, num_new, replace=False)
        exploited = self._exploit(candidates, known, count - num_new, rng)
        return index[np.sort(np.concatenate([exploited, explored]))]

    def select(self, candidates: Candidates, *, rng: np.random.Generator) -> IntArray:
        """Return all that were asked."""
        del rng
        return candidates.device_index

    def after(self, result: RoundResult) -> Mapping[str, NDArray[Any]]:
        """Return the state with the losses and durations of those whose upload arrived."""
        state = {name: values.copy() for name, values in result.state.items()}
        heard = result.reported.among(result.received)
        who = heard.device_index
        assert heard.loss is not None
        state["utility"][who] = heard.num_samples * np.abs(heard.loss)
        state["last_round"][who] = result.round_index
        if result.busy_time_s is not None:
            state["duration_s"][who] = result.busy_time_s[who]
        return state

    def _exploit(
        self, candidates: Candidates, known: IntArray, count: int, rng: np.random.Generator
    ) -> IntArray:
        """Return some of the positions ``known``, drawn by utility from those above the cut-off."""
        if count == 0 or len(known) == 0:
            return known[:0]
        utility = self._utility(candidates, candidates.device_index[known])
        least = self.cut_off * np.sort(utility)[-min(count, len(known))]
        good = np.flatnonzero(utility >= least)
        weights = utility[good] + 1e-12  # equal chances where nobody has any utility
        return known[rng.choice(good, min(count, len(good)), replace=False, p=weights / weights.sum())]

    def _utility(self, candidates: Candidates, who: IntArray) -> FloatArray:
        """Return Eq. (1): the clipped statistical utility and a bonus for staleness, less for the slow."""
        state, now = candidates.state, candidates.round_index + 1
        statistical = np.minimum(state["utility"][who], np.quantile(state["utility"][who], CLIP))
        bonus = np.sqrt(STALENESS * np.log(now) / (state["last_round"][who] + 1))
        duration_s = state["duration_s"][who]
        slowness = np.maximum(duration_s / self.preferred_duration_s, 1.0)
        utility: FloatArray = (statistical + bonus) * slowness**-self.slow_penalty
        return utility
