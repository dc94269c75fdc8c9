"""The paper's figures as charts: the same axes, curves and panels, with intervals over seeds."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from fedwave.plots.chart import Chart, ChartPanel, Series, paired_series, series_over_seeds
from fedwave.plots.style import COLOURS
from fedwave.reproduce.items import URAL_SCHEMES
from fedwave.reproduce.profile import ROUND_OF_THE_PAPER
from fedwave.reproduce.scheme_styles import DATASETS, STYLES, shown_scheme
from fedwave.reproduce.seed_tables import Row, paired
from fedwave.reproduce.wanted_runs import WantedRun
from fedwave.runs.kept_runs import KeptRun

Found = Sequence[tuple[WantedRun, KeptRun]]

LOSS = "held-out loss"
LOSS_19 = f"held-out loss, round {ROUND_OF_THE_PAPER}"
ENERGY, TIME = "energy per round [normalised]", "time per round [normalised]"
WIDE = 8.0  # costs that differ by more than this are drawn on a logarithmic axis
INTERVALS = (
    "Means over seeds; bands are 95 % intervals of what differs within a panel on the same seeds (what a "
    "seed has in common there, such as its partition, is taken out). On logarithmic axes means are geometric."
)
SYMBOLS = {
    "num_local_steps": "local steps τ",
    "num_blocks": "resource blocks M",
    "max_gain": "largest channel gain h_max",
    "energy_weight": "weight of energy η₁",
    "delay_weight": "weight of time η₂",
}


def charts_of(item: str, found: Found, rows: Sequence[Row]) -> list[Chart]:
    """Return the charts of an item; none where nothing was run."""
    if not rows:
        return []
    charts = [make(found, rows) for make in CHARTS.get(item, ())]
    return [chart for chart in charts if chart.panels]


def figure_2(found: Found, rows: Sequence[Row]) -> Chart:
    """Loss by rounds: a row of panels for each dataset, a panel for each n_k."""
    panels = []
    for dataset in _distinct(rows, "dataset"):
        for n in sorted(_distinct(rows, "value")):
            here = [(run, r) for run, r in found if run.point.dataset == dataset and run.point.value == n]
            if here:
                title = f"{DATASETS.get(dataset, dataset)}, n_k = {n:g}"
                panels.append(_curves(title, here, mark_x=ROUND_OF_THE_PAPER))
    caption = (
        "Loss of the held-out devices after one adaptation step. The dotted line is round 19, where the "
        "paper reads "
        f"its numbers. {INTERVALS}"
    )
    return Chart("fig-2", "Figure 2: convergence for n_k devices that upload", caption, tuple(panels), 3)


def figure_3(found: Found, rows: Sequence[Row]) -> Chart:
    """Loss in round 19 by local steps: a panel for each dataset."""
    del found
    panels = tuple(
        _varied(
            [row for row in rows if row["dataset"] == dataset],
            "num_local_steps",
            "loss_19",
            LOSS_19,
            title=DATASETS.get(dataset, dataset),
        )
        for dataset in _distinct(rows, "dataset")
    )
    caption = f"Loss in round 19 by local steps. {INTERVALS}"
    return Chart("fig-3", "Figure 3: effect of local steps", caption, panels, 2)


def figure_4(found: Found, rows: Sequence[Row]) -> Chart:
    """Loss by rounds, and the energy and time of a round, for all schemes."""
    panels = (
        _curves("convergence", found),
        _bars("energy", rows, "energy_j", ENERGY),
        _bars("wall-clock time", rows, "delay_s", TIME, has_log=True),
    )
    caption = (
        "Solid: the paper's IVES and its way of counting, in which every device computes in every "
        "scheme. Dashed or "
        "hatched: only the drawn devices compute, and IVES stops where its fixed point is worth less "
        "than nobody "
        f"uploading. “URAL (optimal)” solves each round's problem to a proven optimum. {INTERVALS}"
    )
    return Chart("fig-4", "Figure 4: convergence, energy and time", caption, panels, 3)


def figure_5(found: Found, rows: Sequence[Row]) -> Chart:
    """The same against the number of blocks."""
    del found
    return _three("fig-5", "Figure 5: effect of resource blocks", rows, "num_blocks", has_log_x=True)


def figure_6(found: Found, rows: Sequence[Row]) -> Chart:
    """The same against the largest gain."""
    del found
    return _three("fig-6", "Figure 6: effect of channel gains", rows, "max_gain")


def figure_7(found: Found, rows: Sequence[Row]) -> Chart:
    """Energy, time and loss against each of the two weights."""
    del found
    panels = []
    for parameter in ("energy_weight", "delay_weight"):
        here = [row for row in rows if row["parameter"] == parameter]
        for column, label in (("energy_j", ENERGY), ("delay_s", TIME), ("loss_19", LOSS_19)):
            panels.append(_varied(here, parameter, column, label))
    caption = (
        "URAL under other weights; the other weight is 1. With raw contributions, in the thousands on "
        "images, the "
        f"weights decide little; dashed green: contributions normalised to mean |u| = 1. {INTERVALS}"
    )
    return Chart("fig-7", "Figure 7: effect of the weights η₁ and η₂", caption, tuple(panels), 3)


def against_costs(found: Found, rows: Sequence[Row]) -> Chart:
    """Loss against joules and seconds spent, not only rounds."""
    del rows
    panels = (
        _against("by energy", found, "energy_j", "energy so far [normalised]"),
        _against("by time", found, "delay_s", "time so far [normalised]"),
    )
    caption = "The runs of Figure 4 against what they cost: means over seeds after each round."
    return Chart("fig-4-costs", "Loss against energy and time", caption, panels, 2)


def optimum_and_ives(item: str, parameter: str, title: str) -> Callable[[Found, Sequence[Row]], Chart]:
    """Return what draws the objective, contribution and uploads of URAL by IVES and by the optimum."""

    def make(found: Found, rows: Sequence[Row]) -> Chart:
        del found
        schemes = [scheme for scheme, *_ in URAL_SCHEMES]
        here = [row for row in rows if row["scheme"] in schemes and row["parameter"] == parameter]
        panels = tuple(
            _varied(here, parameter, column, label, has_log_x=parameter == "num_blocks")
            for column, label in (
                ("objective", "objective U − η₁E − η₂T per round"),
                ("contribution", "contribution U per round"),
                ("received", "uploads per round"),
            )
        )
        caption = (
            "What the certified optimum gains over IVES in problem (P), along the runs of the figure above."
        )
        return Chart(f"{item}-objective", title, caption, panels, 3)

    return make


def turning_point(found: Found, rows: Sequence[Row]) -> Chart:
    """NUFM's lead over Per-FedAvg against the share of devices below the turning point."""
    del found
    others = {row["seed"]: row["loss_19"] for row in rows if row["scheme"] == "Per-FedAvg"}
    shares, leads, labels = [], [], []
    for value in sorted({row["value"] for row in rows if row["parameter"] == "similarity_penalty"}):
        own = {r["seed"]: r for r in rows if r["scheme"] == "NUFM" and r["value"] == value}
        both = paired({seed: row["loss_19"] for seed, row in own.items()}, others)
        if both:
            leads.append([100.0 * (1.0 - a / b) for a, b in both.values()])
            shares.append([100.0 * own[seed]["share_below_turning_point"] for seed in both])
            labels.append(value)
    count = min((len(lead) for lead in leads), default=0)
    if not count:
        return Chart("turning-point", "", "")
    panels = tuple(
        ChartPanel(
            title,
            "similarity penalty λ₁",
            label,
            (
                series_over_seeds(
                    "NUFM", labels, np.array([v[:count] for v in values]).T.tolist(), colour=COLOURS[0]
                ),
            ),
            has_log_x=True,
        )
        for title, label, values in (
            ("the statistic", "devices below the turning point [%]", shares),
            ("what it foretells", "NUFM's lead in loss, round 19 [%]", leads),
        )
    )
    caption = (
        "u falls with the gradient's norm until λ₁ + λ₂/√D. Where that point lies above the norms, NUFM "
        "picks the "
        "smallest gradients: the share of devices below it says, before any test, whether NUFM can help."
    )
    return Chart("turning-point", "Where NUFM does not help", caption, panels, 2)


def gradients(found: Found, rows: Sequence[Row]) -> Chart:
    """Exact, first-order and Hessian-free meta-gradients: loss by rounds and time of a round."""
    names = ("NUFM", "NUFM, first-order", "NUFM, hessian-free")
    own = [(run, r) for run, r in found if run.point.scheme in names and run.point.value in (None, 1.0)]
    timed = [
        r for r in rows if r["scheme"] in names and not r["value"] > 1.0 and math.isfinite(r["cpu_time_s"])
    ]
    panels = [_curves("convergence", own)] if own else []
    if timed:
        panels.append(_bars("computing", timed, "cpu_time_s", "CPU seconds of a round with its test"))
    caption = "The exact meta-gradient beside its two approximations, Eq. (51) and (52)."
    return Chart("gradients", "Three meta-gradients", caption, tuple(panels), 2)


CHARTS: Mapping[str, Sequence[Callable[[Found, Sequence[Row]], Chart]]] = {
    "fig-2": (figure_2,),
    "fig-3": (figure_3,),
    "fig-4": (figure_4, against_costs),
    "fig-5": (
        figure_5,
        optimum_and_ives("fig-5", "num_blocks", "URAL by the optimum and by IVES, by blocks"),
    ),
    "fig-6": (figure_6, optimum_and_ives("fig-6", "max_gain", "URAL by the optimum and by IVES, by gain")),
    "fig-7": (figure_7, optimum_and_ives("fig-7", "energy_weight", "URAL by the optimum and by IVES, by η₁")),
    "beyond": (gradients, turning_point),
}


def _three(name: str, title: str, rows: Sequence[Row], parameter: str, *, has_log_x: bool = False) -> Chart:
    panels = (
        _varied(rows, parameter, "loss_19", LOSS_19, has_log_x=has_log_x),
        _varied(rows, parameter, "energy_j", ENERGY, has_log_x=has_log_x),
        _varied(rows, parameter, "delay_s", TIME, has_log_x=has_log_x, has_log_y=True),
    )
    caption = (
        "Solid: the paper's IVES and its way of counting; dashed: only the drawn "
        "devices compute, and IVES stops where its fixed point is worth less than nobody uploading. "
        f"{INTERVALS}"
    )
    return Chart(name, title, caption, panels, 3)


def _curves(title: str, found: Found, *, mark_x: float | None = None) -> ChartPanel:
    length = min((result.num_rounds for _, result in found), default=0)
    losses = _by_scheme(found, lambda result: result.curve("heldout_loss")[:length].tolist())
    series = paired_series(range(1, length + 1), losses, STYLES)
    return ChartPanel(title, "round", LOSS, series, mark_x=mark_x)


def _against(title: str, found: Found, column: str, label: str) -> ChartPanel:
    """Return the mean loss against the mean of what was spent so far; intervals would be of two kinds."""
    length = min((result.num_rounds for _, result in found), default=0)
    spent = _by_scheme(found, lambda result: np.cumsum(result.curve(column)[:length]).tolist())
    losses = _by_scheme(found, lambda result: result.curve("heldout_loss")[:length].tolist())
    series = []
    for name, own in losses.items():
        x = np.mean(list(spent[name].values()), axis=0).tolist()
        mean = tuple(np.mean(list(own.values()), axis=0).tolist())
        series.append(Series(name, tuple(x), mean, mean, mean, len(own), **STYLES.get(name, {})))
    return ChartPanel(title, label, LOSS, tuple(series), has_log_x=_is_wide(series))


def _is_wide(series: Sequence[Series]) -> bool:
    ends = [one.x[-1] for one in series if one.x[-1] > 0]
    return bool(ends) and max(ends) > WIDE * min(ends)


def _varied(
    rows: Sequence[Row],
    parameter: str,
    column: str,
    label: str,
    *,
    title: str = "",
    has_log_x: bool = False,
    has_log_y: bool = False,
) -> ChartPanel:
    """Return a panel of one figure of all schemes against what is varied; only complete curves are drawn."""
    values = sorted({row["value"] for row in rows})
    by_scheme = {}
    for name in dict.fromkeys(shown_scheme(row["scheme"], row["counting"]) for row in rows):
        own = [row for row in rows if shown_scheme(row["scheme"], row["counting"]) == name]
        by_value = [{row["seed"]: row[column] for row in own if row["value"] == value} for value in values]
        if complete := paired(*by_value):
            by_scheme[name] = complete
    series = paired_series(values, by_scheme, STYLES, is_log=has_log_y, is_one_level=True)
    return ChartPanel(title, SYMBOLS[parameter], label, series, has_log_x=has_log_x, has_log_y=has_log_y)


def _bars(title: str, rows: Sequence[Row], column: str, label: str, *, has_log: bool = False) -> ChartPanel:
    by_scheme: dict[str, dict[int, list[float]]] = {}
    for row in rows:
        by_scheme.setdefault(shown_scheme(row["scheme"], row["counting"]), {})[row["seed"]] = [row[column]]
    series = paired_series((0.0,), by_scheme, STYLES, is_log=has_log)
    return ChartPanel(title, label, "", series, kind="bars", has_log_y=has_log)


def _by_scheme(found: Found, values: Callable[[KeptRun], list[float]]) -> dict[str, dict[int, list[float]]]:
    """Return something of each run, by scheme and seed."""
    groups: dict[str, dict[int, list[float]]] = {}
    for run, result in found:
        name = shown_scheme(run.point.scheme, run.point.counting)
        groups.setdefault(name, {})[run.seed] = values(result)
    return groups


def _distinct(rows: Sequence[Row], name: str) -> list[Any]:
    return list(dict.fromkeys(row[name] for row in rows))
