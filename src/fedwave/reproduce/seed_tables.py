"""The per-seed values of an item: a row for each run, written to the last bit and read back."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fedwave.csv_table import read_table
from fedwave.errors import RunError
from fedwave.reproduce.judgements import FIGURES
from fedwave.reproduce.profile import ROUND_OF_THE_PAPER
from fedwave.reproduce.single_run import accuracy_after
from fedwave.reproduce.wanted_runs import WantedRun
from fedwave.runs.kept_runs import KeptRun
from fedwave.runs.tables import to_csv

SEEDS, CURVES, TEST_READINGS = "seeds.csv", "curves.csv", "probes.csv"
TEXTS = ("dataset", "scheme", "counting", "parameter", "command", "key", "judgement", "curve", "processor")
LOSS_CURVES = {"loss": "heldout_loss", "training_loss": "training_loss"}  # columns of curves.csv

WITH_LOSS_CURVES = ("fig-2", "fig-4", "beyond")  # items that draw a loss by rounds

Row = dict[str, Any]


def row_of(run: WantedRun, kept: KeptRun) -> Row:
    """Return a run's labels and figures."""
    return {
        **run.point.labels,
        "seed": run.seed,
        "rounds": kept.num_rounds,
        **kept.figures,
        "accuracy_19": accuracy_after(kept, ROUND_OF_THE_PAPER),
        **{f"{column}_area": area(kept, curve) for column, curve in LOSS_CURVES.items()},
        "command": run.command,
        "key": run.key,
        "processor": kept.processor,
    }


def area(kept: KeptRun, curve: str) -> float:
    """Return the mean of a curve over all rounds; NaN where a round was not measured."""
    return float(kept.curve(curve).mean()) if np.isfinite(kept.curve(curve)).all() else math.nan


def curve_row(run: WantedRun, kept: KeptRun, num_rounds: int) -> Row:
    """Return a run's losses after each round, in one row; nothing after its last, or where there is none."""
    row: Row = {**run.point.labels, "seed": run.seed}
    for column, curve in LOSS_CURVES.items():
        if curve in kept.curves:
            values = [*kept.curve(curve).tolist(), *[math.nan] * (num_rounds - kept.num_rounds)]
            row |= {f"{column}_{k}": value for k, value in enumerate(values, start=1)}
    return row


def reading_rows(run: WantedRun, kept: KeptRun) -> list[Row]:
    """Return what the readings of the test found, a row for each."""
    return [
        {
            "dataset": run.point.dataset,
            "scheme": run.point.scheme,
            "seed": run.seed,
            "round": int(after),
            "judgement": judgement,
            **{name: figures[name] for name in FIGURES},
        }
        for after, judgements in kept.test_readings.items()
        for judgement, figures in judgements.items()
    ]


def write_rows(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write rows as CSV with the columns of all of them; what a row has not stays empty."""
    header = list(dict.fromkeys(name for row in rows for name in row)) or ["dataset"]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(to_csv([[row.get(name) for name in header] for row in rows], header), encoding="utf-8")


def read_rows(path: Path) -> list[Row]:
    """Return the rows of a CSV: text, whole numbers, numbers, and NaN or None where nothing stands."""
    if not path.exists():
        return []
    table = read_table(path, what="table", error=RunError, fix="Make it again with: fedwave reproduce")
    try:
        return [
            {name: _read(name, text) for name, text in zip(table.header, row, strict=True)}
            for row in table.rows
        ]
    except ValueError as error:
        raise RunError(f"cannot read {path}: {error}. Make it again with: fedwave reproduce") from error


def _read(name: str, text: str) -> Any:
    if name in TEXTS:
        return text
    if name in ("seed", "round", "rounds", "seeds"):
        return int(text)
    return float(text) if text else math.nan


class Tables:
    """The rows of all items, as claims ask for them: one column of the runs with given labels, by seed."""

    def __init__(
        self, rows: Mapping[str, Sequence[Row]], curves: Mapping[str, Sequence[Row]] | None = None
    ) -> None:
        self.rows = rows
        self._curves = curves or {}

    @classmethod
    def read(cls, folder: Path, items: Iterable[str]) -> Tables:
        """Return the tables in a folder; an item without any has no rows."""
        every = list(items)
        return cls(
            {item: read_rows(folder / item / SEEDS) for item in every},
            {item: read_rows(folder / item / CURVES) for item in every if item in WITH_LOSS_CURVES},
        )

    def by_seed(self, item: str, column: str, **labels: Any) -> dict[int, float]:
        """Return the column's value for each seed of the one setting with these labels; NaN without one."""
        found: dict[int, float] = {}
        for row in self.rows.get(item, ()):
            if all(row[name] == value for name, value in labels.items()):
                found[row["seed"]] = row.get(column, math.nan)
        return found

    def curves(self, item: str, column: str, **labels: Any) -> dict[int, list[float]]:
        """Return a loss after each round for each seed of the one setting, where every round was measured."""
        found: dict[int, list[float]] = {}
        for row in self._curves.get(item, ()):
            if all(row[name] == value for name, value in labels.items()):
                values: list[float] = []
                while math.isfinite(row.get(f"{column}_{len(values) + 1}", math.nan)):
                    values.append(row[f"{column}_{len(values) + 1}"])
                if values:
                    found[row["seed"]] = values
        return found

    def values(self, item: str, parameter: str = "") -> list[float]:
        """Return what an item varies, in order."""
        rows = self.rows.get(item, ())
        return sorted({row["value"] for row in rows if not parameter or row["parameter"] == parameter})

    def datasets(self, item: str) -> list[str]:
        """Return the datasets of an item, in the order of its rows."""
        return list(dict.fromkeys(row["dataset"] for row in self.rows.get(item, ())))


def paired(*columns: Mapping[int, float]) -> dict[int, tuple[float, ...]]:
    """Return the values of several settings for the seeds that all of them have."""
    shared = set.intersection(*(set(column) for column in columns)) if columns else set()
    rows = {seed: tuple(column[seed] for column in columns) for seed in sorted(shared)}
    return {seed: row for seed, row in rows.items() if all(math.isfinite(value) for value in row)}
