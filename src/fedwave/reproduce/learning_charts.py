"""Figures 2 and 3, three meta-gradients, and where NUFM does not help, as charts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from fedwave.plots.chart import Chart, ChartPanel, series_over_seeds
from fedwave.plots.style import SCHEME_COLOURS
from fedwave.reproduce.panels import (
    INTERVALS,
    LOSS_19,
    PER_FEDAVG,
    SHADES,
    Found,
    bars_panel,
    curves_panel,
    distinct,
    lead_series,
    varied_panel,
)
from fedwave.reproduce.profile import ROUND_OF_THE_PAPER
from fedwave.reproduce.scheme_styles import DATASETS
from fedwave.reproduce.seed_tables import Row, paired


def figure_2(found: Found, rows: Sequence[Row]) -> Chart:
    """Loss by rounds: a row of panels for each dataset, a panel for each n_k."""
    panels = []
    for dataset in distinct(rows, "dataset"):
        for n in sorted(distinct(rows, "value")):
            here = [(run, r) for run, r in found if run.point.dataset == dataset and run.point.value == n]
            if here:
                title = f"{DATASETS.get(dataset, dataset)}, n_k = {n:g}"
                panels.append(curves_panel(title, here, reference=PER_FEDAVG, mark_x=ROUND_OF_THE_PAPER))
    caption = (
        "Loss of the held-out devices after one adaptation step. The dotted line is round 19, where the "
        f"paper reads its numbers. {INTERVALS.format(PER_FEDAVG)}"
    )
    return Chart("fig-2", "Figure 2: convergence for n_k devices that upload", caption, tuple(panels), 3)


def figure_2_lead(found: Found, rows: Sequence[Row]) -> Chart:
    """NUFM's lead over Per-FedAvg by rounds, which is what the paper claims: a panel for each dataset."""
    panels = []
    for curve, whose in (("heldout_loss", "held-out"), ("training_loss", "training devices")):
        for dataset in distinct(rows, "dataset"):
            series = []
            for shade, n in zip(SHADES, sorted(distinct(rows, "value")), strict=False):
                here = [(run, r) for run, r in found if (run.point.dataset, run.point.value) == (dataset, n)]
                one = lead_series(f"n_k = {n:g}", here, curve, "NUFM", PER_FEDAVG, colour=shade)
                series += [one] if one is not None else []
            if series:
                title = f"{DATASETS.get(dataset, dataset)}, {whose}"
                label = "NUFM's loss below Per-FedAvg's [%]"
                panel = ChartPanel(title, "round", label, tuple(series), mark_y=0.0)
                panels.append(replace(panel, mark_x=ROUND_OF_THE_PAPER))
    caption = (
        "By how much NUFM's loss is below Per-FedAvg's on the same seeds: means with their 95 % intervals. "
        "Where the band holds zero, no lead is sure."
    )
    return Chart("fig-2-lead", "Figure 2: NUFM's lead over Per-FedAvg", caption, tuple(panels), 4)


def figure_3(found: Found, rows: Sequence[Row]) -> Chart:
    """Loss in round 19 by local steps: a panel for each dataset."""
    del found
    panels = tuple(
        varied_panel(
            [row for row in rows if row["dataset"] == dataset],
            "num_local_steps",
            "loss_19",
            LOSS_19,
            title=DATASETS.get(dataset, dataset),
            reference=PER_FEDAVG,
        )
        for dataset in distinct(rows, "dataset")
    )
    caption = f"Loss in round 19 by local steps. {INTERVALS.format(PER_FEDAVG)}"
    return Chart("fig-3", "Figure 3: effect of local steps", caption, panels, 2)


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
                    "NUFM",
                    labels,
                    np.array([v[:count] for v in values]).T.tolist(),
                    colour=SCHEME_COLOURS["NUFM"],
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
    panels = [curves_panel("convergence", own)] if own else []
    if timed:
        panels.append(bars_panel("computing", timed, "cpu_time_s", "CPU seconds of a round with its test"))
    caption = "The exact meta-gradient beside its two approximations, Eq. (51) and (52)."
    return Chart("gradients", "Three meta-gradients", caption, tuple(panels), 2)
