"""Rows of tables that are made up, so that every verdict and mean is known."""

from __future__ import annotations

import math

from fedwave.reproduce.items import IVES

SEEDS = range(8)


NOISE = {seed: 0.001 * math.sin(seed) for seed in SEEDS}
ACCURACY = {"NUFM": (0.7, 0.8, 0.9), "Per-FedAvg": (0.6, 0.75, 0.8), "FedAvg": (0.75, 0.7, 0.65)}


def rows(scheme: str, *, dataset="fashion-mnist", counting="", parameter="", value=math.nan, **columns):
    """One row for each seed; a column is a number, the same for all seeds but for a little noise."""
    return [
        {
            "dataset": dataset,
            "scheme": scheme,
            "counting": counting,
            "parameter": parameter,
            "value": value,
            "seed": seed,
            **{name: number * (1.0 + NOISE[seed]) for name, number in columns.items()},
        }
        for seed in SEEDS
    ]


def table_2(nufm: float, per_fedavg: float, fedavg: float):
    given = {"NUFM": nufm, "Per-FedAvg": per_fedavg, "FedAvg": fedavg}
    return [row for scheme, accuracy in given.items() for row in rows(scheme, accuracy=accuracy)]


def cell_rows(energy: float, delay: float, loss: float = 1.0):
    given = [
        rows(IVES, counting="paper", energy_j=energy, delay_s=delay, loss_19=loss, iterations=2.0, falls=0.0)
    ]
    for scheme, counting in (
        ("NUFM-Greedy", ""), ("NUFM-Random", ""), ("RU-Greedy", "paper"), ("RU-Random", "paper"),
    ):  # fmt: skip
        given.append(
            rows(
                scheme, counting=counting, energy_j=10.0, delay_s=10.0, loss_19=1.0, iterations=0.0, falls=0.0
            )
        )
        for row in given[-1]:
            row["energy_j"] += 0.01 * math.cos(3 * row["seed"])
            row["delay_s"] += 0.01 * math.cos(5 * row["seed"])
            row["loss_19"] += 0.001 * math.cos(7 * row["seed"])
    return [row for own in given for row in own]


def accuracy_rows(parameter: str = "", shift: float = 0.0) -> list[dict]:
    return [
        {
            "dataset": "fashion-mnist",
            "scheme": scheme,
            "counting": "",
            "parameter": parameter,
            "value": math.nan,
            "seed": seed,
            "accuracy": value + (shift if scheme == "NUFM" else 0.0),
        }
        for scheme, values in ACCURACY.items()
        for seed, value in enumerate(values)
    ]


def probes() -> list[dict]:
    """Pooled accuracies are ten points lower, and without adaptation everybody has 30 %."""
    found = []
    for scheme, values in ACCURACY.items():
        for seed, value in enumerate(values):
            for judgement in (
                "one step",
                "no adaptation",
                "5 steps",
                "10 steps",
                "one step, rate x 10",
                "training devices",
            ):
                own = 0.3 if judgement == "no adaptation" else value
                found.append(
                    {
                        "dataset": "fashion-mnist",
                        "scheme": scheme,
                        "seed": seed,
                        "round": 50,
                        "judgement": judgement,
                        "accuracy": own,
                        "accuracy_pooled": own - 0.1,
                        "accuracy_own": own,
                        "accuracy_own_pooled": own,
                    }
                )
    return found
