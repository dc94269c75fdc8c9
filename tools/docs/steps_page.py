"""What docs/what-nufm-does.md says of the item ``steps``: a column for each dataset, what is sure in bold."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from fedwave.intervals import interval, ratio_interval
from fedwave.reproduce.report_pages import markdown_table
from fedwave.reproduce.report_tables import part_measured
from fedwave.reproduce.scheme_styles import DATASETS
from fedwave.reproduce.seed_tables import Row
from fedwave.reproduce.studies import FINDINGS, NUFM, UNIFORM, finding
from fedwave.reproduce.verdicts import JudgedPart

LAST = 50  # round of the paper's runs
# Row by row of the table: what it is called, and the comparison of the study that it shows.
LOSSES = {
    "the lead as the paper sees it": "NUFM below uniform",
    "what the length alone gives": "uniform at NUFM's norms below uniform",
    "what is left at equal lengths": "NUFM below uniform at NUFM's norms",
    "the converse, both at uniform's lengths": "NUFM at uniform's norms below uniform",
}
ACCURACIES = {
    "accuracy: NUFM − uniform": "accuracy: NUFM − uniform",
    "the same at NUFM's lengths": "accuracy: NUFM − uniform at NUFM's norms",
    "everybody − uniform, at NUFM's lengths": "accuracy: everybody at NUFM's norms − uniform at NUFM's norms",
    "herding − uniform, at NUFM's lengths": "accuracy: herding at NUFM's norms − uniform at NUFM's norms",
    "aligned − uniform, at NUFM's lengths": "accuracy: aligned at NUFM's norms − uniform at NUFM's norms",
    "last step − uniform, at NUFM's lengths": "accuracy: last step at NUFM's norms − uniform at NUFM's norms",
    "everybody − uniform": "accuracy: everybody − uniform",
    "herding − uniform": "accuracy: herding − uniform",
}


def steps_table(rows: Sequence[Row], curves: Sequence[Row], study: Sequence[JudgedPart]) -> str:
    """Return the comparisons and the lengths behind them, a column for each dataset that has runs."""
    datasets = list(dict.fromkeys(row["dataset"] for row in rows))
    by_name = {one.part.name: one for one in study}
    table = [
        [f"NUFM's step by uniform's, round {k}", *(_lengths(curves, dataset, k) for dataset in datasets)]
        for k in (3, 20)
    ]
    named = {
        f"{whose} loss, round {k}: {words}": f"{whose} loss, round {k}: {comparison}"
        for whose in ("held-out", "training devices'")
        for words, comparison in LOSSES.items()
        for k in (5, 19, LAST)
    }
    for words, name in {**named, **ACCURACIES}.items():
        own = [by_name.get(f"{name} on {DATASETS[dataset]}") for dataset in datasets]
        table.append([words, *("" if one is None else _shown(one) for one in own)])
    for words, curve, k in (
        ("norm and gain correlate, round 1", "gain_correlation", 1),
        ("norm and gain correlate, round 20", "gain_correlation", 20),
        ("mean cosine of two gradients, round 1", "mean_cosine", 1),
    ):
        table.append([words, *(_correlation(curves, dataset, curve, k) for dataset in datasets)])
    counts = [len({row["seed"] for row in rows if row["dataset"] == dataset}) for dataset in datasets]
    header = [f"{DATASETS[dataset]}, {count} seeds" for dataset, count in zip(datasets, counts, strict=True)]
    return markdown_table(("", *header), table)


def _shown(one: JudgedPart) -> str:
    """Return what a comparison measured: bold if it is surely on one side of zero, ≈ 0 if surely small."""
    measured = part_measured(one)
    if finding(one) in FINDINGS.values():
        return f"**{measured}**"
    return measured if finding(one) == "open" else f"{measured} ≈ 0"


def _by_seed(curves: Sequence[Row], dataset: str, scheme: str, curve: str, k: int) -> Mapping[int, float]:
    wanted = (dataset, scheme, curve)
    return {
        row["seed"]: row[f"round_{k}"]
        for row in curves
        if (row["dataset"], row["scheme"], row["curve"]) == wanted
    }


def _lengths(curves: Sequence[Row], dataset: str, k: int) -> str:
    own, other = (_by_seed(curves, dataset, scheme, "update_norm", k) for scheme in (NUFM, UNIFORM))
    return str(ratio_interval([own[seed] / other[seed] for seed in own]))


def _correlation(curves: Sequence[Row], dataset: str, curve: str, k: int) -> str:
    """Return a mean correlation of NUFM's runs with its 95 % interval, by Fisher's transform."""
    one = interval([math.atanh(value) for value in _by_seed(curves, dataset, NUFM, curve, k).values()])
    steps = (0.0, -one.half_width, one.half_width)
    mean, low, high = (f"{math.tanh(one.mean + step):.2f}".replace("-", "−") for step in steps)
    return f"{mean} ({low} to {high})"
