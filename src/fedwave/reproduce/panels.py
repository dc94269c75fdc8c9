"""Panels of the figures: curves by rounds, leads, what is varied, bars, and costs, over paired seeds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from fedwave.plots.chart import ChartPanel, Series, paired_series, series_over_seeds
from fedwave.reproduce.items import IVES
from fedwave.reproduce.profile import ROUND_OF_THE_PAPER
from fedwave.reproduce.scheme_styles import STYLES, shown_scheme
from fedwave.reproduce.seed_tables import Row, paired
from fedwave.reproduce.wanted_runs import WantedRun
from fedwave.runs.kept_runs import KeptRun
from fedwave.units import FloatArray

Found = Sequence[tuple[WantedRun, KeptRun]]

LOSS = "held-out loss"
LOSS_19 = f"held-out loss, round {ROUND_OF_THE_PAPER}"
ENERGY, TIME = "energy per round [normalised]", "time per round [normalised]"
WIDE = 8.0  # costs that differ by more than this are drawn on a logarithmic axis
INTERVALS = (
    "Means over seeds; the band around a curve is the 95 % interval of its difference to {} on the same "
    "seeds: where that line is outside, the two differ."
)
RATIOS = "On logarithmic axes means are geometric and bands are of ratios."
PER_FEDAVG = "Per-FedAvg"
SHADES = ("#000000", "#0072B2", "#8A8F98")  # of n_k, the smallest first
SYMBOLS = {
    "num_local_steps": "local steps τ",
    "num_blocks": "resource blocks M",
    "max_gain": "largest channel gain h_max",
    "energy_weight": "weight of energy η₁",
    "delay_weight": "weight of time η₂",
    "meta_lr": "meta-learning rate β",
    "weight_std": "standard deviation of the first weights",
}


def curves_panel(
    title: str,
    found: Found,
    curve: str = "heldout_loss",
    label: str = LOSS,
    *,
    reference: str | None = None,
    mark_x: float | None = None,
) -> ChartPanel:
    """Return a curve of all schemes by rounds."""
    length = min((result.num_rounds for _, result in found), default=0)
    values = by_scheme(found, lambda result: result.curve(curve)[:length].tolist())
    series = paired_series(range(1, length + 1), values, STYLES, reference=reference)
    return ChartPanel(title, "round", label, series, mark_x=mark_x)


def lead_series(
    name: str, found: Found, curve: str, better: str, worse: str, *, is_percent: bool = True, **look: Any
) -> Series | None:
    """Return by rounds how far a scheme is ahead of another on the same seeds; None without both.

    Of losses by how many per cent it is below, of accuracies by how many points it is above.
    """
    both = by_scheme(found, lambda result: result.curve(curve).tolist())
    own, other = both.get(better, {}), both.get(worse, {})
    rows = []
    for seed in sorted(set(own) & set(other)):
        a, b = np.array(own[seed]), np.array(other[seed])
        rows.append((100.0 * (1.0 - a / b) if is_percent else 100.0 * (a - b)).tolist())
    measured = np.isfinite(np.array(rows)).all(axis=0) if rows else np.zeros(0, dtype=bool)
    if not measured.any():
        return None
    at = np.flatnonzero(measured)
    return series_over_seeds(name, (at + 1).tolist(), np.array(rows)[:, at].tolist(), **look)


def spent_panel(title: str, found: Found, column: str, label: str) -> ChartPanel:
    """Return the mean loss against the median of what was spent so far; intervals would be of two kinds."""
    length = min((result.num_rounds for _, result in found), default=0)
    spent = by_scheme(found, lambda result: np.cumsum(result.curve(column)[:length]).tolist())
    losses = by_scheme(found, lambda result: result.curve("heldout_loss")[:length].tolist())
    series = []
    for name, own in losses.items():
        x = np.median(list(spent[name].values()), axis=0).tolist()
        mean = tuple(np.mean(list(own.values()), axis=0).tolist())
        series.append(Series(name, tuple(x), mean, mean, mean, len(own), **STYLES.get(name, {})))
    return ChartPanel(title, label, LOSS, tuple(series), has_log_x=_is_wide(series))


def _is_wide(series: Sequence[Series]) -> bool:
    ends = [one.x[-1] for one in series if one.x[-1] > 0]
    return bool(ends) and max(ends) > WIDE * min(ends)


def varied_panel(
    rows: Sequence[Row],
    parameter: str,
    column: str,
    label: str,
    *,
    title: str = "",
    has_log_x: bool = False,
    has_log_y: bool = False,
    reference: str | None = None,
) -> ChartPanel:
    """Return a panel of one figure of all schemes against what is varied; only complete curves are drawn."""
    values = sorted({row["value"] for row in rows})
    every = {}
    for name in dict.fromkeys(shown_scheme(row["scheme"], row["counting"]) for row in rows):
        own = [row for row in rows if shown_scheme(row["scheme"], row["counting"]) == name]
        by_value = [{row["seed"]: row[column] for row in own if row["value"] == value} for value in values]
        if complete := paired(*by_value):
            every[name] = complete
    series = paired_series(values, every, STYLES, is_log=has_log_y, reference=reference)
    return ChartPanel(title, SYMBOLS[parameter], label, series, has_log_x=has_log_x, has_log_y=has_log_y)


def bars_panel(
    title: str, rows: Sequence[Row], column: str, label: str, *, has_log: bool = False
) -> ChartPanel:
    """Return a bar for each scheme, or a dot on a logarithmic axis."""
    every: dict[str, dict[int, list[float]]] = {}
    for row in rows:
        every.setdefault(shown_scheme(row["scheme"], row["counting"]), {})[row["seed"]] = [row[column]]
    series = paired_series((0.0,), every, STYLES, is_log=has_log, reference=IVES)
    return ChartPanel(title, label, "", series, kind="bars", has_log_y=has_log)


def by_scheme(found: Found, values: Callable[[KeptRun], list[float]]) -> dict[str, dict[int, list[float]]]:
    """Return something of each run, by scheme and seed."""
    groups: dict[str, dict[int, list[float]]] = {}
    for run, result in found:
        name = shown_scheme(run.point.scheme, run.point.counting)
        groups.setdefault(name, {})[run.seed] = values(result)
    return groups


def distinct(rows: Sequence[Row], name: str) -> list[Any]:
    """Return the values of a column, each once, in the order of the rows."""
    return list(dict.fromkeys(row[name] for row in rows))


def transformed_series(
    name: str,
    x: Sequence[float],
    by_seed: FloatArray,
    there: Callable[[FloatArray], FloatArray],
    back: Callable[..., FloatArray],
    **look: Any,
) -> Series:
    """Return a curve whose means and intervals are those of a transform, transformed back."""
    one = series_over_seeds(name, x, there(by_seed).tolist(), **look)
    mean, low, high = (tuple(back(np.array(own)).tolist()) for own in (one.mean, one.low, one.high))
    return replace(one, mean=mean, low=low, high=high)
