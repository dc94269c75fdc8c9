"""How many times as much one setting pays as another for the same accuracy, seed by seed.

Seeds are other partitions and cells, and differ much more than schemes do; a ratio within each seed does not.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from fedwave.runs.compare import FinishedRun, interval

CostName = Literal["rounds", "delay_s", "energy_j"]


@dataclass(frozen=True)
class Ratio:
    """A geometric mean over seeds with its 95 % interval (Student's t of the logarithms)."""

    mean: float
    low: float
    high: float
    count: int

    def __str__(self) -> str:
        if math.isnan(self.mean):
            return "-"
        spread = "" if self.count == 1 else f" ({_shown(self.low)}–{_shown(self.high)})"
        return f"{_shown(self.mean)} ×{spread}"


def paired_ratio(
    theirs: Sequence[FinishedRun], ours: Sequence[FinishedRun], cost: CostName, *, target: float
) -> Ratio:
    """Return how many times as much they pay as we do until the target, where both reach it."""
    own = {run.experiment.seed: run for run in ours}
    logarithms = []
    for run in theirs:
        if run.experiment.seed not in own:
            continue
        paid, base = run.cost_of_reaching(target), own[run.experiment.seed].cost_of_reaching(target)
        if paid is not None and base is not None and getattr(base, cost) > 0 and getattr(paid, cost) > 0:
            logarithms.append(math.log(getattr(paid, cost) / getattr(base, cost)))
    found = interval(logarithms)
    return Ratio(
        math.exp(found.mean),
        math.exp(found.mean - found.half_width),
        math.exp(found.mean + found.half_width),
        found.count,
    )


def _shown(value: float) -> str:
    return f"{value:.1f}" if 1.0 <= value < 10.0 else f"{value:.2g}"
