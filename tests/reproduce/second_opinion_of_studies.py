"""The comparisons of ``steps``, ``rates`` and ``robust`` once more, from their CSVs, not by the package."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tests.reproduce.second_opinion import NAMES, Table, both, tested

LENGTH = "uniform at NUFM's norms"


def studied(folder: Path, item: str) -> list[dict]:
    """Return an item's comparisons with their p-values, corrected over all of them, and decisions."""
    find = {"steps": steps, "rates": rates, "robust": robust}[item]
    found = []
    for name, values, interest in find(folder / item):
        if len(values):
            row = {"name": name, "values": np.asarray(values), "side": "above", "threshold": 0.0}
            found.append(row | {"paper": None, "interest": interest})
    return tested(found)


def difference(own: dict[int, float], other: dict[int, float]) -> list[float]:
    """Return 100 (a - b) for every seed that has both."""
    rows = both(own, other)
    return [100.0 * (a - b) for a, b in rows]


def steps(folder: Path) -> list[tuple[str, list[float], float]]:
    seeds, curves = Table(folder / "seeds.csv"), Table(folder / "curves.csv")
    found = []
    for dataset in dict.fromkeys(row["dataset"] for row in seeds.rows):
        shown = NAMES[dataset]
        for curve, words in (
            ("heldout_loss", "held-out loss"),
            ("training_loss", "training devices' loss"),
        ):
            for better, worse in (
                ("NUFM", "uniform"), (LENGTH, "uniform"), ("NUFM", LENGTH),
                ("NUFM at uniform's norms", "uniform"),
            ):  # fmt: skip
                for k in (5, 19, 50):
                    a, b = (
                        curves.pick(f"round_{k}", dataset=dataset, scheme=arm, curve=curve)
                        for arm in (better, worse)
                    )
                    values = [100.0 * (b[seed] - a[seed]) / b[seed] for seed in sorted(set(a) & set(b))]
                    found.append((f"{words}, round {k}: {better} below {worse} on {shown}", values, 2.0))
        pairs = [("NUFM", "uniform"), ("NUFM", LENGTH)]
        pairs += [
            (f"{who} at NUFM's norms", LENGTH) for who in ("aligned", "last step", "herding", "everybody")
        ]
        for better, worse in (*pairs, ("herding", "uniform"), ("everybody", "uniform")):
            both_arms = (seeds.pick("accuracy", dataset=dataset, scheme=arm) for arm in (better, worse))
            found.append((f"accuracy: {better} − {worse} on {shown}", difference(*both_arms), 1.0))
    return found


SCHEMES = ("NUFM", "Per-FedAvg", "FedAvg", "Everybody")


def rates(folder: Path) -> list[tuple[str, list[float], float]]:
    table = Table(folder / "seeds.csv")
    found = []
    for dataset in dict.fromkeys(row["dataset"] for row in table.rows):
        own = [row for row in table.rows if row["dataset"] == dataset]
        seeds = sorted({int(row["seed"]) for row in own})
        accuracy = {
            (row["scheme"], float(row["value"]), int(row["seed"])): float(row["accuracy"] or 0.0)
            for row in own
        }
        every = sorted({rate for _, rate, _ in accuracy})
        usual = {(scheme, seed): accuracy[scheme, 0.001, seed] for scheme in SCHEMES for seed in seeds}
        best = {}
        for scheme in SCHEMES:
            grid = np.array([[accuracy[scheme, rate, seed] for seed in seeds] for rate in every])
            for column, seed in enumerate(seeds):
                if len(seeds) > 1:
                    chosen = np.argmax(np.delete(grid, column, axis=1).mean(1))
                    best[scheme, seed] = grid[chosen, column]
        for better, worse in (("NUFM", "Per-FedAvg"), ("Per-FedAvg", "FedAvg"), ("NUFM", "Everybody")):
            for words, own_of in (("at the usual β", usual), ("each at its best β", best)):
                judged = [seed for seed in seeds if (better, seed) in own_of]
                values = [100.0 * (own_of[better, seed] - own_of[worse, seed]) for seed in judged]
                if values:
                    found.append((f"accuracy {words}: {better} − {worse} on {NAMES[dataset]}", values, 1.0))
    return found


def robust(folder: Path) -> list[tuple[str, list[float], float]]:
    table = Table(folder / "seeds.csv")
    found = []
    for dataset in dict.fromkeys(row["dataset"] for row in table.rows):
        shown = NAMES[dataset]

        def pick(column: str, scheme: str, kind: str, dataset: str = dataset) -> dict[int, float]:
            return table.pick(column, dataset=dataset, scheme=scheme, parameter=kind)

        def versus(column: str, kind: str) -> list[float]:
            return difference(pick(column, "NUFM", kind), pick(column, "Per-FedAvg", kind))

        for kind in dict.fromkeys(row["parameter"] for row in table.rows):
            if kind != "none":
                name = f"{kind}: a device at fault is chosen, NUFM − Per-FedAvg on {shown}"
                found.append((name, versus("faulty_chosen", kind), 5.0))
                for scheme in ("NUFM", "Per-FedAvg", "Everybody"):
                    values = difference(pick("accuracy", scheme, kind), pick("accuracy", scheme, "none"))
                    found.append((f"{kind}: accuracy of {scheme}, with − without on {shown}", values, 1.0))
            name = f"{kind}: accuracy, NUFM − Per-FedAvg on {shown}"
            found.append((name, versus("accuracy", kind), 1.0))
        name = f"accuracy of the worst tenth, NUFM − Per-FedAvg on {shown}"
        found.append((name, versus("accuracy_worst_tenth", "none"), 1.0))
        found.append(
            (f"devices never chosen, NUFM − Per-FedAvg on {shown}", versus("never_chosen", "none"), 5.0)
        )
    return found
