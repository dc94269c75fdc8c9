"""Planners on the trace of one run: what each makes of it, beside the bound that none beats within budgets.

Utility is never said without the joules of the device that spends most: what is above the bound is overdrawn.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from fedwave.errors import ConfigError, did_you_mean
from fedwave.longterm.bound import LongTermBound, long_term_bound
from fedwave.longterm.trace import Replay, Trace, replay, trace_of_run
from fedwave.runs.folder import RunFolder
from fedwave.runs.tables import DEVICES
from fedwave.server import (
    CappedRounds,
    CellPlanner,
    ConstantPrices,
    DriftPlusPenalty,
    Eafl,
    Planner,
    UntilSpent,
)

THIS_RUN = "this run"
ROUNDS_OWED = (1.0, 3.0, 10.0)  # of the budget: a queue that has the bound's price, for V that nobody gave
OCEAN_FRAME = 10
Made = Callable[[CellPlanner], Planner]


@dataclass(frozen=True, kw_only=True, eq=False)
class Candidate:
    """A planner's result on the trace, or the run's own."""

    name: str
    v: float | None  # of drift-plus-penalty
    replay: Replay
    budget_j: float

    @property
    def overdraw_j(self) -> float:
        """Joules a round that the device which spends most takes beyond its budget; negative: nobody does."""
        return self.replay.worst_energy_j - self.budget_j


@dataclass(frozen=True, kw_only=True, eq=False)
class LongTermComparison:
    """A bound over a trace, and what planners made of it."""

    budget_j: float  # of each device and round, on average
    num_rounds: int
    num_devices: int
    bound: LongTermBound
    candidates: tuple[Candidate, ...]  # the run itself comes first

    def share(self, candidate: Candidate) -> float:
        """Return a candidate's utility as a share of the bound; NaN where the bound is not positive."""
        value = self.bound.value
        return candidate.replay.mean_utility / value if value > 0.0 else math.nan

    def rows(self) -> list[dict[str, float | str | None]]:
        """Return a plain row for each candidate, the bound first."""
        nothing = dict.fromkeys(("worst_energy_j", "overdraw_j", "num_asked", "num_received"))
        first = {"planner": "bound", "v": None, "utility": self.bound.value, "share_of_bound": 1.0, **nothing}
        return [
            first,
            *(
                {
                    "planner": one.name,
                    "v": one.v,
                    "utility": one.replay.mean_utility,
                    "share_of_bound": self.share(one),
                    "worst_energy_j": one.replay.worst_energy_j,
                    "overdraw_j": one.overdraw_j,
                    "num_asked": float(one.replay.num_asked.mean()),
                    "num_received": float(one.replay.num_received.mean()),
                }
                for one in self.candidates
            ),
        ]


def _drift(v: float, **options: Any) -> Callable[[Trace, float, LongTermBound], Made]:
    return lambda trace, budget_j, bound: partial(DriftPlusPenalty, budget_j=budget_j, v=v, **options)


# What stands around the run's own planner, given the trace, the budget of a round and the bound; those whose
# name is in PRICED_BY_V once for every V.
RIVALS: dict[str, Callable[[Trace, float, LongTermBound], Made]] = {
    "myopic": lambda trace, budget_j, bound: lambda planner: planner,
    "until-spent": lambda trace, budget_j, bound: partial(UntilSpent, total_j=trace.num_rounds * budget_j),
    "capped-rounds": lambda trace, budget_j, bound: partial(CappedRounds, budget_j=budget_j),
    "eafl": lambda trace, budget_j, bound: partial(
        Eafl, total_j=trace.num_rounds * budget_j, utility="contribution"
    ),
    "constant-prices": lambda trace, budget_j, bound: partial(ConstantPrices, price=bound.prices.tolist()),
}
PRICED_BY_V: dict[str, dict[str, object]] = {
    "drift-plus-penalty": {},
    "drift-plus-penalty-all": {"asks": "all"},
    "ocean": {"frame": OCEAN_FRAME, "growth": 1.0},
}
DEFAULT = (*RIVALS, "drift-plus-penalty-all", "drift-plus-penalty")


def compare_long_term(
    path: Path | str,
    *,
    budget_j: float | None = None,
    planners: Sequence[str] = DEFAULT,
    v: Sequence[float] = (),
    num_steps: int = 60,
    data_dir: Path | None = None,
    progress: Callable[[str], None] = lambda text: None,
) -> LongTermComparison:
    """Return the bound over a run's trace, the run's own result, and those of other planners replayed on it.

    ``budget_j`` is of each device and round: by default what the run's planner has, and without one the run's
    own joules in equal shares. ``v`` are knobs of drift-plus-penalty; by default those at which a queue of
    one, three and ten budgets has the bound's median price.
    """
    for name in planners:
        if name not in (*RIVALS, *PRICED_BY_V):
            known = (*RIVALS, *PRICED_BY_V)
            raise ConfigError(f'There is no planner "{name}". {did_you_mean(name, known)}')
    folder = RunFolder.open(Path(path))
    trace = trace_of_run(path, data_dir=data_dir)
    own = own_replay(folder, trace)
    planned = folder.experiment().algorithm.planner
    if budget_j is None:
        budget_j = float(planned.options.get("budget_j", own.energy_j.mean()))
    if not (math.isfinite(budget_j) and budget_j > 0.0):
        raise ConfigError(
            f"budget_j must be finite and > 0, got {budget_j:g}. Give a device's joules a round."
        )
    if wrong := [one for one in v if not (math.isfinite(one) and one > 0.0)]:
        raise ConfigError(f"v must be finite and > 0, got {wrong[0]:g}. Leave it out for values that fit.")
    bound = long_term_bound(
        trace,
        budget_j,
        num_steps=num_steps,
        progress=lambda step: progress(f"bound: step {step + 1} of {num_steps}"),
    )
    found = [Candidate(name=f"{THIS_RUN} ({planned.kind})", v=None, replay=own, budget_j=budget_j)]
    for name in planners:
        for knob in [None] if name in RIVALS else v or typical_v(budget_j, bound):
            progress(f"replay: {name}")
            rival = RIVALS[name] if knob is None else _drift(knob, **PRICED_BY_V[name])
            made = replay(trace, rival(trace, budget_j, bound))
            found.append(Candidate(name=name, v=knob, replay=made, budget_j=budget_j))
    return LongTermComparison(
        budget_j=budget_j,
        num_rounds=trace.num_rounds,
        num_devices=trace.num_devices,
        bound=bound,
        candidates=tuple(found),
    )


def own_replay(folder: RunFolder, trace: Trace) -> Replay:
    """Return what the run itself made of its trace, as its tables say: U - eta_1 E - eta_2 T of arrivals."""
    shape = (trace.num_rounds, trace.num_devices)
    devices, rounds = folder.table(DEVICES), folder.table()
    grid = {
        name: np.asarray(devices[name], dtype=np.float64)[: math.prod(shape)].reshape(shape)
        for name in ("cumulative_energy_j", "is_received")
    }
    energy_j = np.diff(grid["cumulative_energy_j"], axis=0, prepend=0.0)
    received = grid["is_received"] > 0
    aims, delay_s = trace.planner.aims, np.asarray(rounds["delay_s"])[: trace.num_rounds]
    gained = np.where(received, trace.contribution, 0.0).sum(axis=1)
    return Replay(
        utility=gained - aims.energy_weight * energy_j.sum(axis=1) - aims.delay_weight * delay_s,
        energy_j=energy_j,
        num_asked=np.asarray(rounds["num_computed"], dtype=np.float64)[: trace.num_rounds],
        num_received=received.sum(axis=1).astype(np.float64),
    )


def typical_v(budget_j: float, bound: LongTermBound) -> list[float]:
    """Return V at which a queue of some rounds' budget has the bound's median price, to two digits."""
    binding = bound.prices[bound.prices > 0.0]
    price = float(np.median(binding)) if binding.size else 1.0 / budget_j
    return [float(f"{owed * budget_j / price:.2g}") for owed in ROUNDS_OWED]
