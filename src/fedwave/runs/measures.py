"""What settings are compared by: a number of each run, how it is averaged, and how it is paired."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from fedwave.intervals import Interval, Median, Ratio, interval, median_interval, ratio_interval
from fedwave.metric import Metric
from fedwave.runs.compare import CostName, FinishedRun
from fedwave.runs.inference import all_equal, two_sided

Value = Callable[[FinishedRun], float]


@dataclass(frozen=True)
class Measure:
    """A number of each run; NaN where it has none."""

    name: str  # as in CSV and JSON
    heading: str  # of a column
    value: Value
    is_better_high: bool = False
    is_skewed: bool = False  # a median is shown, not a mean
    has_ratio: bool = False  # it is compared by ratios, not by differences
    scale: float = 1.0  # of what is shown
    is_tested: bool = True  # whether one is better than another, and shown beside the baseline
    is_of_target: bool = False  # it counts until the target is reached

    @property
    def paired_heading(self) -> str:
        """The heading of differences or ratios to the baseline."""
        if self.has_ratio:
            return f"× {self.heading.split(' ')[0]}"
        return "Δ points" if self.scale != 1.0 else f"Δ {self.heading}"

    def own(self, values: Sequence[float]) -> Interval | Median:
        """Return the figure of one setting over its seeds, as shown."""
        return (median_interval if self.is_skewed else interval)([self.scale * value for value in values])

    def paired(self, pairs: Sequence[tuple[float, float]]) -> Interval | Ratio:
        """Return the difference or ratio, as shown, of (ours, baseline's)."""
        if self.has_ratio:
            return ratio_interval([ours / base for ours, base in pairs])
        return interval([self.scale * (ours - base) for ours, base in pairs])

    def p_value(self, pairs: Sequence[tuple[float, float]]) -> float:
        """Return how likely so large a difference is by chance; NaN where all seeds have the same one."""
        steps = np.array([math.log(ours / base) if self.has_ratio else ours - base for ours, base in pairs])
        if not self.is_tested or steps.size < 2 or all_equal(steps):
            return math.nan
        return two_sided(steps)


def measures_of(runs: Sequence[FinishedRun], metric: Metric, target: float) -> tuple[Measure, ...]:
    """Return the measures of some runs: what they came to, then what they paid until the target."""
    judged = metric.name.replace("_", " ")
    found = [
        Measure(
            f"heldout_{metric.name}",
            f"{judged} [%]" if metric.is_share else judged,
            lambda run: run.last(f"heldout_{metric.name}"),
            is_better_high=metric.higher_is_better,
            scale=100.0 if metric.is_share else 1.0,
        ),
        Measure("heldout_loss", "loss", lambda run: run.last("heldout_loss")),
    ]
    over_cell = any(run.has_cell for run in runs)
    has_carbon = any(run.carbon_intensity_g_per_kwh is not None for run in runs)
    if over_cell:
        found.append(
            Measure("uploads", "uploads", lambda run: float(run.curve("num_received").sum()), is_tested=False)
        )
        found += _costs(
            lambda run: run.last("cumulative_delay_s"),
            lambda run: run.last("cumulative_energy_j"),
            has_carbon=has_carbon,
        )
    found.append(Measure("rounds", "rounds", lambda run: _until(run, target, "rounds"), has_ratio=True))
    if over_cell:
        found += _costs(
            lambda run: _until(run, target, "delay_s"),
            lambda run: _until(run, target, "energy_j"),
            has_carbon=has_carbon,
        )
    num_final = next(place for place, one in enumerate(found) if one.name == "rounds")
    return tuple(
        one if place < num_final else replace(one, name=f"{one.name}_to_target", is_of_target=True)
        for place, one in enumerate(found)
    )


def _costs(seconds: Value, joules: Value, *, has_carbon: bool) -> list[Measure]:
    """Return costs, which have heavy tails: medians, and ratios."""
    found = [
        Measure("delay_s", "seconds", seconds, is_skewed=True, has_ratio=True),
        Measure("energy_j", "joules", joules, is_skewed=True, has_ratio=True),
    ]
    if has_carbon:  # joules once more, in other units
        grams = Measure("carbon_g", "gCO2", lambda run: run.carbon_g(joules(run)), is_tested=False)
        found.append(replace(grams, is_skewed=True, has_ratio=True))
    return found


def _until(run: FinishedRun, target: float, what: CostName) -> float:
    """Return rounds, seconds or joules until the target, NaN where it is not reached."""
    cost = run.cost_of_reaching(target)
    return math.nan if cost is None else float(getattr(cost, what))
