"""What NUFM learns with fixed penalties (1), with the theory's, and with the theory's scaled to gradients.

    python benchmarks/theory_penalties.py [PRESET] [--seeds N] [--out FOLDER] [KEY=VALUE ...]

Paired runs of each seed; prints means with 95 % intervals, the difference to fixed penalties, the share of
training devices that were never chosen, and in which share of the rounds the theory's penalties put every
device below the turning point. Runs in FOLDER are kept.
"""

from __future__ import annotations

import argparse
import csv
import json
import tempfile
from pathlib import Path
from typing import Any

from fedwave.experiments import load_experiment
from fedwave.intervals import interval
from fedwave.runs.run import run_experiment

KINDS = ("fixed", "estimated", "calibrated")


def summary_of(preset: str, kind: str, seed: int, folder: Path, settings: list[str]) -> dict[str, Any]:
    """Return the summary of a run, which is made unless it is there."""
    path = folder / f"{kind}-{seed}"
    if not (path / "summary.json").exists():
        own = [f"seed={seed}", f"selection.penalties={kind}", f"name={kind}", "evaluation.every=10"]
        run_experiment(load_experiment(preset, [*own, "execution.workers=1", *settings]), path)
    found: dict[str, Any] = json.loads((path / "summary.json").read_text(encoding="utf-8"))
    with (path / "devices.csv").open(encoding="utf-8", newline="") as file:
        chosen = {row["device"] for row in csv.DictReader(file) if row["is_selected"] == "1"}
    return found | {"never_chosen": 1.0 - len(chosen) / found["num_train_devices"]}


def main() -> None:
    """Run what is missing, and print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("preset", nargs="?", default="digits/nufm")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--out", type=Path, default=None)
    arguments, settings = parser.parse_known_args()
    folder = arguments.out or Path(tempfile.mkdtemp())
    found = {
        kind: [summary_of(arguments.preset, kind, k, folder, settings) for k in range(arguments.seeds)]
        for kind in KINDS
    }
    accuracy = {kind: [100 * s["final"]["heldout_accuracy"] for s in own] for kind, own in found.items()}
    print(
        "| penalties | held-out accuracy [%] | less fixed [points] | training loss | never chosen [%] "
        "| everybody below |\n|---|---|---|---|---|---|"
    )
    for kind, own in found.items():
        lead = [one - other for one, other in zip(accuracy[kind], accuracy["fixed"], strict=True)]
        loss = interval([s["final"]["train_loss"] for s in own])
        told = [s for s in own if "penalties" in s]
        share = [s["penalties"]["rounds_with_everybody_below"] / s["num_rounds"] for s in told]
        below = f"{100 * sum(share) / len(share):.0f} % of rounds" if share else "–"
        never = interval([100 * s["never_chosen"] for s in own])
        less = "–" if kind == "fixed" else str(interval(lead)).replace("-", "−")
        print(f"| {kind} | {interval(accuracy[kind])} | {less} | {loss} | {never} | {below} |")


if __name__ == "__main__":
    main()
