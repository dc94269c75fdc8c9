"""Draws docs/figures/theory.png and prints the tables of docs/theory.md, from the theory.csv of two runs.

    python docs/figures/make_theory.py

The commands that made docs/figures/theory_*.csv are in docs/results.toml.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from pathlib import Path

from fedwave.plots.draw_chart import draw_chart
from fedwave.plots.theory import theory_chart
from fedwave.runs.theory_rows import (
    CONSTANTS,
    SAYINGS,
    THEORY,
    Snapshot,
    read_snapshots,
    theory_header,
    theory_rows,
)

HERE = Path(__file__).parent


def kept(dataset: str) -> list[Snapshot]:
    """Return the snapshots that are kept of a dataset."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(HERE / f"theory_{dataset}.csv", Path(folder) / THEORY)
        return read_snapshots(Path(folder))


def main() -> None:
    """Draw the one, print the other."""
    for dataset in ("fashion_mnist", "cifar_100"):
        snapshots = kept(dataset)
        print(f"\n{dataset}\n")
        print("| " + " | ".join(theory_header(snapshots)) + " |\n|---" + "|---" * len(snapshots) + "|")
        for row in theory_rows(snapshots, (*CONSTANTS, *SAYINGS)):
            print(re.sub(r"(?<= )-(?=\d)", "−", "| " + " | ".join(row) + " |"))
    draw_chart(theory_chart(kept("fashion_mnist"))).save(HERE / "theory.png")


if __name__ == "__main__":
    main()
