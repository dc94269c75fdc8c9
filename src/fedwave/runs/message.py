"""What a comparison says in one line, the heading of its picture: no more than its test tells apart."""

from __future__ import annotations

import math

from fedwave.intervals import Interval, Ratio
from fedwave.runs.comparison import Comparison, estimate_of
from fedwave.runs.inference import LEVEL
from fedwave.runs.measures import Measure


def message_of(comparison: Comparison, measure: str | None = None) -> str:
    """Return what the best setting gains over the baseline, or the baseline over the next; "" for one alone.

    ``measure`` is a name of ``comparison.measures``, by default the held-out metric. A difference that chance
    alone could make, or that one seed alone has, is said to be that.
    """
    found = next((one for one in comparison.measures if one.name == measure), comparison.measures[0])
    middles = {name: estimate_of(row[found.name].own)[0] for name, row in comparison.rows.items()}
    others = {
        name: value
        for name, value in middles.items()
        if name != comparison.baseline and math.isfinite(value) and _has_pairs(comparison, name, found)
    }
    if not others:
        return ""
    name = (max if found.is_better_high else min)(others, key=others.__getitem__)
    cell = comparison.rows[name][found.name]
    assert cell.paired is not None  # has pairs
    count, base = cell.paired.count, comparison.baseline
    middle, nothing = estimate_of(cell.paired)[0], 1.0 if found.has_ratio else 0.0
    gap = _gap(comparison, found, cell.paired)
    if count == 1:
        return f"{name} beside {base}, on one seed: {gap}"
    gap += f" ({count} seeds)"
    if cell.p_value >= LEVEL or middle == nothing:  # NaN: the same in all seeds
        return f"{name} and {base} cannot be told apart: {gap}"
    if (middle > nothing) != found.is_better_high:
        return f"Nobody beats {base}; next is {name}: {gap}"
    return f"{name} beats {base}: {gap}"


def _has_pairs(comparison: Comparison, name: str, measure: Measure) -> bool:
    paired = comparison.rows[name][measure.name].paired
    return paired is not None and paired.count > 0


def _gap(comparison: Comparison, measure: Measure, paired: Interval | Ratio) -> str:
    if isinstance(paired, Ratio):
        return f"{paired} the {measure.heading} to {comparison.shown_target}"
    unit = " points" if measure.scale != 1.0 else ""
    sign = "+" if paired.mean > 0 else ""
    return f"{sign}{paired}{unit} of {measure.heading.removesuffix(' [%]')}"
