"""What docs/theory.md says in its first lines: ranges over all snapshots of the committed tables."""

from __future__ import annotations

from collections.abc import Callable

from fedwave.reproduce.seed_tables import read_rows
from tools.docs.pages import DOCS

TABLES = ("theory_fashion_mnist", "theory_cifar_100")  # in docs/figures/
RATIOS: dict[str, Callable[[dict[str, float]], float]] = {
    "penalty_by_norm": lambda row: row["similarity_corrected"] / row["norm_max"],
    "promised_by_seen": lambda row: row["promised_used"] / row["seen"],
    "fall_by_bound": lambda row: -row["promised_printed"] / row["seen"],
    "rate_by_limit": lambda row: row["rate_over_limit"],
    "distance_by_norm": lambda row: row["largest_distance"] / row["norm_max"],
}


def numbers() -> dict[str, str]:
    """Return the least and the largest of every ratio, with two digits."""
    rows = [
        {name: float(value) for name, value in row.items()}
        for table in TABLES
        for row in read_rows(DOCS / "figures" / f"{table}.csv")
    ]
    found = {name: sorted(ratio(row) for row in rows) for name, ratio in RATIOS.items()}
    return {
        "command": "fedwave theory paper/nufm",
        "caveat": "Over the five snapshots of two datasets, one seed each.",
    } | {name: f"{_shown(own[0])} to {_shown(own[-1])}" for name, own in found.items()}


def _shown(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.1f}"
