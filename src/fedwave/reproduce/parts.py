"""A claim of the paper in parts: each has a number for each seed, a side, a threshold and an interest."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fedwave.reproduce.scheme_styles import DATASETS
from fedwave.reproduce.seed_tables import Tables, paired
from fedwave.runs.inference import Side

BySeed = Mapping[int, float]

ALIKE = 0.05  # losses within 5 % of each other are called equal: "almost overlap", "hardly moves"
FLAT = 0.1  # |slope| of log time against log M that is called flat: doubling M moves the time by 7 %
FEW_ITERATIONS = 3.0  # "about two"
ROUNDING = 1e-9  # differences below this, of logarithms or shares, are no change

# The smallest effects of interest, where the paper gives no size of which half could be taken.
POINTS_OF_INTEREST = 1.0  # of accuracy
LOSS_OF_INTEREST = 2.0  # % of the loss
LOSS_PER_STEP_OF_INTEREST = 0.2  # % of the loss per local step: as much over ten steps
ROUNDS_OF_INTEREST = 1.0
RATIO_OF_INTEREST = math.log(1.05)  # of energy or time
SLOPE_OF_INTEREST = 0.05  # on logarithmic axes: doubling moves it by 3.5 %


@dataclass(frozen=True)
class Part:
    """One testable sentence of a claim."""

    what: str  # is measured
    values: BySeed  # of each seed; of a ratio the logarithm
    side: Side
    threshold: float
    unit: str = ""
    said: str = ""  # what the paper gives, in its words
    paper: float | None = None  # the same in our unit, where it is one number
    interest: float | None = None  # the smallest effect of interest, about zero
    is_point: bool = True  # whether it carries the claim's point
    is_ratio: bool = False
    num_trials: int = 0  # of a count of what should never happen
    where: str = ""  # what tells it from the parts that measure the same: "on CIFAR-10"

    @property
    def name(self) -> str:
        """What is measured, and where."""
        return f"{self.what} {self.where}".rstrip()


@dataclass(frozen=True)
class Claim:
    """A claim of the paper and how its parts follow from the tables of per-seed values."""

    name: str
    text: str
    source: str
    parts: Callable[[Tables], Iterator[Part]]
    untestable: str = ""  # why, where the paper leaves out what decides
    is_sweep: bool = False  # of ours over what the paper leaves out: corrected among its own parts


def on(dataset: str) -> str:
    """Return where a part is measured: on which dataset."""
    return f"on {DATASETS.get(dataset, dataset)}"


def percent_below(own: BySeed, other: BySeed) -> dict[int, float]:
    """Return by how many per cent of the other's a scheme's number is lower, for each seed."""
    return {seed: 100.0 * (1.0 - a / b) for seed, (a, b) in paired(own, other).items()}


def log_ratios(own: BySeed, other: BySeed) -> dict[int, float]:
    """Return the logarithm of the ratio for each seed that has both; heavy tails have no mean, but this."""
    return {seed: math.log(a / b) for seed, (a, b) in paired(own, other).items() if min(a, b) > 0}


def slope(x: Sequence[float], y: Sequence[float]) -> float:
    """Return the slope of the least-squares line: 0 where the values differ by rounding alone."""
    if len(x) < 2:
        return math.nan
    return 0.0 if max(y) - min(y) < ROUNDING else float(np.polyfit(x, y, 1)[0])


def log_slopes(
    tables: Tables, item: str, column: str, values: Sequence[float], **labels: object
) -> dict[int, float]:
    """Return each seed's slope of a column over what is varied, on logarithmic axes."""
    columns = [tables.by_seed(item, column, value=value, **labels) for value in values]
    return {
        seed: slope(np.log(values).tolist(), np.log(row).tolist())
        for seed, row in paired(*columns).items()
        if min(row) > 0
    }
