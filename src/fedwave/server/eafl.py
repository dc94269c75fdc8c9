"""EAFL: Oort's bandit with the battery level in its reward (Arouj and Abdelmoniem 2022, arXiv 2208.04505).

A device that took part is rewarded f U + (1 - f) power, with Oort's utility U and what is left in its charge.
Oort (Lai et al., OSDI 2021) then adds a bonus for those not heard of for long, lowers the score of the slow,
draws among the best, and keeps a share of every round for devices that were never tried.
docs/long-term.md says what is ours.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from fedwave.errors import ConfigError
from fedwave.rng import Stream, generator
from fedwave.server.long_term import CAPACITY, CHARGE, SPENT, OverACell, heard_batteries
from fedwave.server.outcome import Outcome
from fedwave.server.plan import Plan
from fedwave.server.planner import PlannerState
from fedwave.server.reports import Reports
from fedwave.units import FloatArray, IntArray

UTILITY, DURATION, LAST_ROUND = "utility", "duration_s", "last_round"
PACE, PAST = "pace_percent", "past_utility"
_ASKING = 2  # of the draws of a round's selection: the policy has the first two
_CLIP = 0.95  # rewards above this quantile count as much as it
_CUT_OFF = 0.95  # of the last chosen score: who reaches it may be drawn
_BONUS = 0.1  # of the logarithm of the round, over the round in which a device was last heard of
_PENALTY = 2.0  # power of the preferred over the own duration
_FLAT, _SHARP = 0.1, 5.0  # changes of utility at which the pace is relaxed, or tightened


@dataclass(frozen=True, eq=False)
class Eafl(OverACell):
    """Asks ``num_asked`` devices by EAFL's reward; the cell's method chooses among those who uploads.

    ``by = "battery"`` reads the charge of the cell's batteries, as last heard (full before the first round);
    ``by = "budget"`` takes ``total_j`` for a battery that nothing fills. Who has nothing left is not asked.
    """

    total_j: float = 1.0  # of a device, for the whole run
    by: Literal["budget", "battery"] = "budget"
    num_asked: int = 0  # K; 0: as many as there are blocks
    f: float = 0.25  # weight of the utility in the reward; theirs
    utility: Literal["loss", "contribution"] = "loss"  # samples times loss, as Oort's, or the contribution
    exploration: float = 0.9  # share of K that goes to devices never tried, in the first round
    decay: float = 0.98  # of that share, from round to round
    min_exploration: float = 0.2
    pace_percent: float = 30.0  # share of the devices whose duration counts as preferred, to begin with
    pace_step: float = 5.0  # by which it changes
    pace_rounds: int = 20  # W: after so many rounds utilities are compared

    def __post_init__(self) -> None:
        super().__post_init__()
        shares = (self.f, self.exploration, self.decay, self.min_exploration)
        if not (self.total_j > 0 and self.num_asked >= 0 and all(0.0 <= share <= 1.0 for share in shares)):
            raise ConfigError(
                "eafl needs total_j > 0, num_asked >= 0, and f, exploration, decay and min_exploration in 0 "
                f"to 1, got {self.total_j:g}, {self.num_asked}, {shares}. Change what is not."
            )
        if not (self.pace_percent > 0 and self.pace_step >= 0 and self.pace_rounds >= 1):
            raise ConfigError(
                f"eafl needs pace_percent > 0, pace_step >= 0 and pace_rounds >= 1, got "
                f"{self.pace_percent:g}, {self.pace_step:g} and {self.pace_rounds}. Oort has 30, 5 and 20."
            )

    def initial_state(self) -> PlannerState:
        """Return that nobody has been tried."""
        never = np.full(self.num_devices, np.nan)
        return {
            **super().initial_state(),
            CHARGE: never,
            CAPACITY: never,
            UTILITY: np.zeros(self.num_devices),
            DURATION: never,
            LAST_ROUND: np.zeros(self.num_devices, dtype=np.int64),  # counted from 1; 0: never
            PACE: np.array([self.pace_percent]),
            PAST: np.zeros(2 * self.pace_rounds),
        }

    def power(self, state: PlannerState) -> FloatArray:
        """Return what is left in each battery, as a share of what it holds."""
        if self.by == "budget":
            return np.asarray(np.maximum(1.0 - state[SPENT] / self.total_j, 0.0))
        left = np.divide(
            state[CHARGE], state[CAPACITY], out=np.zeros(self.num_devices), where=state[CAPACITY] > 0
        )
        return np.asarray(np.where(np.isnan(state[CHARGE]), 1.0, left))

    def scores(self, round_index: int, who: IntArray, state: PlannerState) -> FloatArray:
        """Return Oort's score of devices that were tried, with EAFL's reward in the place of the utility."""
        utility = state[UTILITY][who]
        largest = float(utility.max(initial=0.0))
        reward = (
            self.f * (utility / largest if largest > 0 else utility) + (1 - self.f) * self.power(state)[who]
        )
        clip = np.sort(reward)[min(int(len(who) * _CLIP), len(who) - 1)]
        least = 0.999 * reward.min()
        reward = (np.minimum(reward, clip) - least) / max(float(reward.max() - least), 1e-4)
        score = reward + np.sqrt(_BONUS * math.log(round_index + 1) / state[LAST_ROUND][who])
        duration, preferred = state[DURATION][who], self._preferred_s(state)
        is_slow = duration > preferred
        penalty = np.where(is_slow, preferred / np.where(is_slow, duration, 1.0), 1.0) ** _PENALTY
        return np.asarray(score * penalty)

    def ask(self, round_index: int, state: PlannerState) -> IntArray:
        """Return K of the inner planner's choice that have something left: untried ones, and the best."""
        asked = super().ask(round_index, state)
        alive = asked[self.power(state)[asked] > 0.0]
        tried = state[LAST_ROUND][alive] > 0
        known, new = alive[tried], alive[~tried]
        count = min(self.num_asked or self.cell_planner.num_blocks, len(alive))
        share = max(self.exploration * self.decay ** (round_index + 1), self.min_exploration)
        num_new = min(max(int(count * share), count - len(known)), len(new))
        rng = generator(self.cell_planner.runner.seed, Stream.SELECTION, round_index, _ASKING)
        explored = rng.choice(new, num_new, replace=False)
        if count == num_new:
            return np.sort(explored)
        score = self.scores(round_index, known, state)
        last = np.sort(score)[len(known) - (count - num_new)]
        is_good = score >= _CUT_OFF * last
        chance = np.maximum(score[is_good], np.finfo(np.float64).tiny)
        best = rng.choice(known[is_good], count - num_new, replace=False, p=chance / chance.sum())
        return np.sort(np.concatenate([explored, best]))

    def after(
        self, round_index: int, reports: Reports, plan: Plan, outcome: Outcome, state: PlannerState
    ) -> PlannerState:
        """Return what the round told of those that took part, and the pace for the next."""
        after = super().after(round_index, reports, plan, outcome, state)
        assert outcome.costs is not None
        who = reports.device_index
        of_loss = reports.num_samples * np.abs(reports.loss)
        value = of_loss if self.utility == "loss" else np.maximum(reports.contribution, 0.0)
        utility, duration, last = state[UTILITY].copy(), state[DURATION].copy(), state[LAST_ROUND].copy()
        utility[who], duration[who] = value, outcome.costs.busy_time_s[who]
        last[who] = round_index + 1
        past = np.append(state[PAST][1:], value.mean() if len(who) else 0.0)
        return {
            **after,
            **heard_batteries(outcome, state),
            UTILITY: utility,
            DURATION: duration,
            LAST_ROUND: last,
            PACE: self._pace(round_index + 1, state[PACE], past),
            PAST: past,
        }

    def _pace(self, num_rounds: int, pace: FloatArray, past: FloatArray) -> FloatArray:
        """Return Oort's pacer: slower devices are preferred, too, where utility no longer changes."""
        if num_rounds < 2 * self.pace_rounds or num_rounds % self.pace_rounds:
            return pace
        before, now = float(past[: self.pace_rounds].sum()), float(past[self.pace_rounds :].sum())
        if abs(now - before) <= _FLAT * before:
            return np.minimum(pace + self.pace_step, 100.0)
        if abs(now - before) >= _SHARP * before:
            return np.maximum(pace - self.pace_step, self.pace_step)
        return pace

    def _preferred_s(self, state: PlannerState) -> float:
        """Return the duration up to which nobody is slow."""
        known = np.sort(state[DURATION][~np.isnan(state[DURATION])])
        place = int(len(known) * float(state[PACE][0]) / 100.0)
        return float(known[place]) if place < len(known) else math.inf
