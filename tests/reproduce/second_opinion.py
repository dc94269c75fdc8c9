"""Every verdict once more, from seeds.csv and curves.csv by csv, numpy and scipy alone, not by the package.

Each part of each claim is written out here from docs/reproduction.md's words, with the numbers of the paper.
"""

from __future__ import annotations

import csv
import math
from pathlib import Path

import numpy as np
from scipy import interpolate, optimize, stats

NAMES = {
    "fashion-mnist": "Fashion-MNIST", "cifar-10": "CIFAR-10", "cifar-100": "CIFAR-100",
    "tiny-imagenet": "Tiny ImageNet",
}  # fmt: skip
PAPER = {
    "fashion-mnist": [68.04, 62.75, 61.04],
    "cifar-10": [58.80, 58.22, 54.31],
    "cifar-100": [23.95, 21.49, 10.13],
    "tiny-imagenet": [34.04, 30.98, 12.14],
}
IVES = "URAL (IVES as printed)"


class Table:
    """A CSV whose columns are picked by labels."""

    def __init__(self, path: Path) -> None:
        with path.open(newline="", encoding="utf-8") as file:
            self.rows = list(csv.DictReader(file))

    def pick(self, column: str, **labels: object) -> dict[int, float]:
        """Return the column by seed, where every label fits and there is a number."""
        found = {}
        for row in self.rows:
            fits = all(
                row[name] == want if isinstance(want, str) else row[name] and float(row[name]) == want
                for name, want in labels.items()
            )
            if fits and row.get(column):
                found[int(row["seed"])] = float(row[column])
        return found

    def has(self, column: str, dataset: str) -> bool:
        """Whether all rows of a dataset have a number in the column."""
        return all(row.get(column) for row in self.rows if row["dataset"] == dataset)


def both(*columns: dict[int, float]) -> np.ndarray:
    """Return a row for each seed that all columns have."""
    seeds = sorted(set.intersection(*map(set, columns)))
    return np.array([[column[seed] for column in columns] for seed in seeds])


def parts(folder: Path) -> list[dict]:
    """Return claim, name, values and the terms of every part that has values."""
    return [part for part in _all_parts(folder) if len(part["values"])]


def _all_parts(folder: Path) -> list[dict]:
    found: list[dict] = []

    def add(claim, name, values, side="above", threshold=0.0, paper=None, interest=None) -> None:
        row = {"claim": claim, "name": name, "values": np.asarray(values), "side": side}
        found.append(row | {"threshold": threshold, "paper": paper, "interest": interest})

    table = Table(folder / "table-2" / "seeds.csv")
    for claim, (i, better, worse) in (
        ("C1a", (0, "NUFM", "Per-FedAvg")),
        ("C1b", (1, "Per-FedAvg", "FedAvg")),
    ):
        for dataset, name in NAMES.items():
            pair = both(*(table.pick("accuracy", dataset=dataset, scheme=s) for s in (better, worse)))
            lead = PAPER[dataset][i] - PAPER[dataset][i + 1]
            values = 100 * (pair[:, 0] - pair[:, 1])
            add(claim, f"{better} − {worse} on {name}", values, paper=lead, interest=max(1.0, lead / 2))

    fig_2, curves = Table(folder / "fig-2" / "seeds.csv"), Table(folder / "fig-2" / "curves.csv")

    def kinds(table: Table, dataset: str) -> list[tuple[str, str]]:
        if table.has("training_loss_19", dataset):
            return [("held-out", "loss_19"), ("training devices", "training_loss_19")]
        return [("held-out", "loss_19"), ("reported by those that compute", "train_loss_19")]

    def below(table: Table, column: str, own: dict, other: dict) -> dict[int, float]:
        a, b = table.pick(column, **own), table.pick(column, **other)
        return {seed: 100 * (1 - a[seed] / b[seed]) for seed in sorted(set(a) & set(b))}

    fashion = {"dataset": "fashion-mnist"}
    for who, column in kinds(fig_2, "fashion-mnist"):
        for n, percent in ((30, 9.0), (40, 20.0)):
            nufm = {**fashion, "scheme": "NUFM"}
            values = below(fig_2, column, nufm | {"value": 20.0}, nufm | {"value": float(n)})
            name = f"loss ({who}) with n_k = 20 below n_k = {n} on Fashion-MNIST"
            add("C2a", name, list(values.values()), "above", percent, interest=percent / 2)

    def area(prefix: str, dataset: str, scheme: str, n: float) -> dict[int, float]:
        losses = [curves.pick(f"{prefix}_{k}", dataset=dataset, scheme=scheme, value=n) for k in range(1, 51)]
        whole = set.intersection(*map(set, losses))
        return {seed: float(np.mean([own[seed] for own in losses])) for seed in sorted(whole)}

    prefixes = (("held-out", "loss"), ("training devices", "training_loss"))
    for who, prefix in prefixes:
        for n in (30.0, 40.0):
            a, b = (area(prefix, "fashion-mnist", "NUFM", m) for m in (20.0, n))
            values = [100 * (1 - a[seed] / b[seed]) for seed in sorted(set(a) & set(b))]
            name = f"area under the loss ({who}), n_k = 20 below n_k = {n:g} on Fashion-MNIST"
            add("C2b", name, values, interest=2.0)
    for dataset, shown in NAMES.items():
        for who, column in kinds(fig_2, dataset):
            leads = []
            for n in (20.0, 40.0):
                nufm, per_fedavg = (
                    {"dataset": dataset, "scheme": s, "value": n} for s in ("NUFM", "Per-FedAvg")
                )
                leads.append(below(fig_2, column, nufm, per_fedavg))
            pair = both(*leads)
            name = f"lead ({who}) at n_k = 20 − lead at n_k = 40 on {shown}"
            add("C3a", name, pair[:, 0] - pair[:, 1], interest=2.0)
    for dataset, shown in NAMES.items():
        for who, prefix in prefixes:
            a, b = (area(prefix, dataset, scheme, 20.0) for scheme in ("NUFM", "Per-FedAvg"))
            values = [100 * (1 - a[seed] / b[seed]) for seed in sorted(set(a) & set(b))]
            add("C3b", f"area under the loss ({who}), NUFM below Per-FedAvg on {shown}", values, interest=2.0)
            name = f"rounds saved ({who}) at Per-FedAvg's round 19 on {shown}"
            add("C3b", name, _rounds_saved(curves, prefix, dataset), interest=1.0)

    fig_3 = Table(folder / "fig-3" / "seeds.csv")
    for dataset in ("fashion-mnist", "cifar-100"):
        for who, column in kinds(fig_3, dataset):
            for other in ("Per-FedAvg", "FedAvg"):
                leads = []
                for tau in range(1, 11):
                    labels = ({"dataset": dataset, "scheme": s, "value": float(tau)} for s in ("NUFM", other))
                    leads.append(below(fig_3, column, *labels))
                slopes = [stats.linregress(range(1, 11), row).slope for row in both(*leads)]
                name = f"slope of the lead ({who}) over {other} on {NAMES[dataset]}"
                add("C4", name, slopes, "below", interest=0.2)

    fig_4 = Table(folder / "fig-4" / "seeds.csv")
    others = {"NUFM-Greedy": "", "NUFM-Random": "", "RU-Greedy": "paper", "RU-Random": "paper"}
    for claim, what, column in (("C5a", "energy", "energy_j"), ("C5b", "time", "delay_s")):
        for scheme, counting in others.items():
            pair = both(fig_4.pick(column, scheme=IVES), fig_4.pick(column, scheme=scheme, counting=counting))
            values = np.log(pair[:, 0]) - np.log(pair[:, 1])
            add(claim, f"{what} beside {scheme}", values, "below", interest=math.log(1.05))
    for scheme in ("NUFM-Greedy", "NUFM-Random"):
        pair = both(fig_4.pick("loss_19", scheme=IVES), fig_4.pick("loss_19", scheme=scheme))
        add("C5c", f"loss in round 19 beside {scheme}", 100 * (pair[:, 0] / pair[:, 1] - 1), "within", 5.0)

    def log_slopes(item: str, column: str, values, scheme=IVES, **labels) -> list[float]:
        table = Table(folder / item / "seeds.csv")
        rows = both(*(table.pick(column, scheme=scheme, value=value, **labels) for value in values))
        rows = rows[(rows > 0).all(axis=1)] if rows.size else rows
        found = [stats.linregress(np.log(values), np.log(row)).slope for row in rows]
        return [0.0 if np.ptp(np.log(row)) < 1e-9 else one for one, row in zip(found, rows, strict=True)]

    blocks = [1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0]
    add("C6a", "slope of log T over log M", log_slopes("fig-5", "delay_s", blocks), "within", 0.1)
    energy = log_slopes("fig-5", "energy_j", blocks)
    add("C6b", "slope of log E over log M, less than in proportion", energy, "below", 1.0)
    add("C6b", "slope of log E over log M, grows", energy, interest=0.05)
    fig_5 = Table(folder / "fig-5" / "seeds.csv")
    pair = both(*(fig_5.pick("loss_19", scheme=IVES, value=m) for m in (5.0, 50.0)))
    values = 100 * (pair[:, 0] / pair[:, 1] - 1)
    add("C6c", "loss in round 19 with 5 blocks beside 50", values, "below", 5.0)
    gains = [0.25 * i for i in range(1, 9)]
    for claim, what, column in (("C7a", "energy", "energy_j"), ("C7b", "time", "delay_s")):
        values = log_slopes("fig-6", column, gains)
        add(claim, f"slope of log {what} over log h_max", values, "below", interest=0.05)
    weights = [0.5, 1.0, 1.5, 2.0, 2.5]
    of_paper = math.log(21.53 / 18.63) / math.log(5.0)
    for claim, parameter, symbol, sides in (
        ("C8a", "energy_weight", "η₁", ("below", "above")),
        ("C8b", "delay_weight", "η₂", ("above", "below")),
    ):
        for (what, column), side in zip((("energy", "energy_j"), ("time", "delay_s")), sides, strict=True):
            paper = of_paper if (claim, what) == ("C8a", "time") else None
            values = log_slopes("fig-7", column, weights, parameter=parameter)
            name = f"slope of log {what} over log {symbol}"
            add(claim, name, values, side, paper=paper, interest=0.05 if paper is None else paper / 2)
    fig_7 = Table(folder / "fig-7" / "seeds.csv")
    for parameter, symbol in (("energy_weight", "η₁"), ("delay_weight", "η₂")):
        losses = both(*(fig_7.pick("loss_19", scheme=IVES, parameter=parameter, value=w) for w in weights))
        values = 100 * (losses.max(1) / losses.min(1) - 1)
        add("C8c", f"spread of the loss in round 19 over {symbol}", values, "below", 5.0)
    if (folder / "scales" / "seeds.csv").exists():
        scales = dict.fromkeys(row["scheme"] for row in Table(folder / "scales" / "seeds.csv").rows)
        for scheme in scales:
            for what, column, side in (("energy", "energy_j", "below"), ("time", "delay_s", "above")):
                paper = of_paper if what == "time" else None
                name = f"slope of log {what} over log η₁ with " + " and ".join(scheme.split(", ")[1:])
                values = log_slopes("scales", column, weights, scheme)
                add("C8d", name, values, side, paper=paper, interest=0.05 if paper is None else paper / 2)
    values = list(fig_4.pick("iterations", scheme=IVES).values())
    add("C9a", "iterations of IVES", values, "below", 3.0)
    values = list(fig_4.pick("falls", scheme=IVES).values())
    add("C9b", "rounds in which the objective fell", values, "below", 0.5)
    return found


def _rounds_saved(curves: Table, prefix: str, dataset: str) -> list[float]:
    """Return 19 minus the round at which NUFM's curve first has the loss of Per-FedAvg's 19th."""
    every = {
        scheme: [
            curves.pick(f"{prefix}_{k}", dataset=dataset, scheme=scheme, value=20.0) for k in range(1, 51)
        ]
        for scheme in ("NUFM", "Per-FedAvg")
    }
    saved = []
    for seed in sorted(every["Per-FedAvg"][18]):
        if not all(seed in own for own in every["NUFM"]):
            continue
        curve = interpolate.interp1d(np.arange(1.0, 51.0), [own[seed] for own in every["NUFM"]])
        target = every["Per-FedAvg"][18][seed]
        there = next((k for k in range(1, 51) if curve(k) <= target), None)
        if there is None or there == 1:
            saved.append(19.0 - (there or 50.0))
        else:
            root = optimize.brentq(lambda at, c=curve, t=target: c(at) - t, there - 1.0, there, xtol=1e-13)
            saved.append(19.0 - root)
    return saved


def judged(folder: Path) -> list[dict]:
    """Return the parts with their p-values and decisions."""
    return tested(parts(folder))


def tested(own: list[dict]) -> list[dict]:
    """Return parts with their p-values, corrected over all of them, and decisions."""
    for part in own:
        values, n = part["values"], len(part["values"])
        if n < 2:
            part["mean"], part["exact"] = values.mean(), False
            continue
        mean, sd = values.mean(), values.std(ddof=1)
        part["mean"], part["exact"] = mean, bool(np.ptp(values) <= 1e-12 * np.abs(values).max())
        low, high = (
            stats.t.interval(0.95, n - 1, loc=mean, scale=sd / math.sqrt(n)) if sd > 0 else (mean, mean)
        )
        part["half_width"] = (high - low) / 2
        threshold = part["threshold"]
        if part["exact"]:
            inside = {"above": mean > threshold, "below": mean < threshold, "within": abs(mean) < threshold}
            part["for"] = bool(inside[part["side"]])
            continue
        greater = stats.ttest_1samp(values, threshold, alternative="greater").pvalue
        if part["side"] == "within":
            tost = max(
                stats.ttest_1samp(values, -threshold, alternative="greater").pvalue,
                stats.ttest_1samp(values, threshold, alternative="less").pvalue,
            )
            part["for"] = abs(mean) < threshold
            beyond = math.copysign(threshold, mean)
            part["p"] = min(1, 2 * tost) if part["for"] else stats.ttest_1samp(values, beyond).pvalue
        else:
            part["for"] = (mean > threshold) == (part["side"] == "above")
            part["p"] = 2 * min(greater, 1 - greater) if 1e-6 < greater < 1 - 1e-6 else None
            part["p"] = part["p"] or stats.ttest_1samp(values, threshold).pvalue
        if part["paper"] is not None:
            part["p_size"] = stats.ttest_1samp(values, part["paper"]).pvalue
            # Welch's two-sample test of one value against n has the pooled spread of the n alone.
            t = (part["paper"] - mean) / (sd * math.sqrt(1 + 1 / n))
            part["p_run"] = 2 * stats.t.sf(abs(t), n - 1)
        if part["interest"] is not None:
            upper = stats.ttest_1samp(values, part["interest"], alternative="less").pvalue
            lower = stats.ttest_1samp(values, -part["interest"], alternative="greater").pvalue
            part["p_small"] = min(1.0, 2 * max(upper, lower))
    for question in ("p", "p_size", "p_small"):
        for is_sweep in (False, True):  # C8d is ours, and corrected by itself
            family = [part for part in own if (part.get("claim") == "C8d") == is_sweep]
            asked = sorted(
                (part for part in family if part.get(question) is not None), key=lambda part: part[question]
            )
            running = 0.0
            for rank, part in enumerate(asked):
                running = max(running, min(1.0, (len(asked) - rank) * part[question]))
                part[f"{question}_holm"] = running
    for part in own:
        part["decision"] = _decision(part)
    return own


def _decision(part: dict) -> str:
    if part["exact"] or part.get("p_holm", 1.0) < 0.05:
        return "holds" if part["for"] else "does not hold"
    if part.get("p_small_holm", 1.0) < 0.05:
        return "no effect of interest"
    if part.get("p_size_holm", 1.0) < 0.05:
        short = part["mean"] < part["paper"] if part["side"] == "above" else part["mean"] > part["paper"]
        if short:
            return "not of the paper's size"
    return "open"
