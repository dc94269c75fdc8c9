"""What runs over a cell cost over seeds: medians, and ratios paired by seed, for docs/results.toml."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fedwave.intervals import Ratio, interval, median_interval, ratio_interval
from fedwave.runs.seed_costs import PHASES, SeedRow


def of(rows: Sequence[SeedRow], run: str) -> dict[int, SeedRow]:
    """Return the lines of one setting by seed."""
    return {int(row["seed"]): row for row in rows if row["run"] == run}


def paired(rows: Sequence[SeedRow], run: str, base: str, column: str) -> Ratio:
    """Return how many times as much a setting takes as another on the same seeds: log-ratios, 95 %."""
    own, other = of(rows, run), of(rows, base)
    pairs = [(own[seed][column], other[seed][column]) for seed in own if seed in other]
    return ratio_interval([float(one) / float(two) for one, two in pairs if one != "" and two != ""])


def times(ratio: Ratio) -> str:
    """Return a ratio to two decimals below 2, where they tell it from 1."""
    mean, low, high = (
        f"{value:.2f}" if value < 2 else f"{value:.2g}" for value in (ratio.mean, ratio.low, ratio.high)
    )
    return f"{mean} × ({low}–{high})"


def lines_of(rows: Sequence[SeedRow], keys: Mapping[str, str]) -> dict[str, str]:
    """Return lines of docs/results.toml: accuracies as means, costs as medians, ratios to the first one.

    ``keys`` are the names in that file by the names of the runs.
    """
    found: dict[str, str] = {}
    base = next(iter(keys))
    for run, key in keys.items():
        own = list(of(rows, run).values())
        found[f"{key}_accuracy"] = f"{interval([100 * float(row['accuracy']) for row in own])} %"
        for cost, column, unit in (("time", "time_s", "s"), ("energy", "energy_j", "J")):
            found[f"{key}_{cost}"] = f"{median_interval([float(row[column]) for row in own])} {unit}"
            to = [float(row[f"target_{column}"]) for row in own if row[f"target_{column}"] != ""]
            count = "" if len(to) == len(own) else f", {len(to)} of {len(own)} seeds"
            found[f"{key}_target_{cost}"] = f"{median_interval(to)} {unit}{count}"
            if run != base:
                found[f"{key}_{cost}_ratio"] = times(paired(rows, run, base, column))
                found[f"{key}_target_{cost}_ratio"] = times(paired(rows, run, base, f"target_{column}"))
        for column in (*PHASES, "other_j"):
            values = median_interval([float(row[column]) for row in own])
            found[f"{key}_{column.removesuffix('_j')}"] = f"{values} J"
    return found
