"""Gathers the contributions of run folders into one CSV: a row per seed and round, a column per device.

for s in 0 1 2 3 4; do fedwave run paper/nufm --seed $s -s num_rounds=20 --out runs/s$s; done
python benchmarks/data/collect_contributions.py runs/s? > benchmarks/data/fashion_mnist_contributions.csv
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path


def main() -> None:
    writer = csv.writer(sys.stdout, lineterminator="\n")
    for index, folder in enumerate(map(Path, sys.argv[1:])):
        rounds: dict[int, dict[int, str]] = {}
        with (folder / "devices.csv").open(newline="") as file:
            for row in csv.DictReader(file):
                rounds.setdefault(int(row["round"]), {})[int(row["device"])] = (
                    f"{float(row['contribution']):.6g}"
                )
        if index == 0:
            first = rounds[min(rounds)]
            writer.writerow(["run", "round", *(f"device_{k}" for k in range(len(first)))])
        for number, values in sorted(rounds.items()):
            writer.writerow([index, number, *(values[device] for device in sorted(values))])


if __name__ == "__main__":
    main()
