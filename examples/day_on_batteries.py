"""A day in a street cell on small batteries: what is learnt in 24 hours, and who is dead when.

    python examples/day_on_batteries.py [--seeds 0 1 2 3 4 5 6 7 8 9] [--out day] [--csv FILE] [--plot FILE]

Thirty cameras behind windows live on light; every ten minutes a round begins, from six in the evening. URAL
(optimal) plans each round as if it were the last, until batteries die. Drift plus penalty prices a joule by
what the battery lacks. The others ask half of the devices, with and without prices, draw ten, or leave a
device alone that has spent 60 J. Runs that are there are read, those that were stopped are resumed.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

from fedwave import load_experiment, read_run, resume_run, run_experiment
from fedwave.cli.console import print_tables
from fedwave.intervals import interval, median_interval
from fedwave.plots.batteries import plot_batteries
from fedwave.runs.batteries import HOUR_S, battery_history
from fedwave.runs.compare import FinishedRun, group_by_name

SCHEMES = ("ural", "drift-plus-penalty", "few-asked", "drift-few-asked", "uniform", "until-spent")


def run_one(scheme: str, seed: int, out: Path, changes: Sequence[str] = ()) -> FinishedRun:
    """Return a finished run of a day."""
    folder = out / f"{scheme}-seed{seed}"
    if (folder / "config.toml").exists():
        if not (folder / "summary.json").exists():
            resume_run(folder)
    else:
        settings = [f"seed={seed}", "execution.workers=1", *changes]
        run_experiment(load_experiment(f"day/{scheme}", settings), folder)
    return read_run(folder)


def row_of(name: str, run: FinishedRun) -> dict[str, float | int | str]:
    """Return the figures of one run; "" for what never happened."""
    own = battery_history(run)
    assert own is not None
    accuracy = 100.0 * run.heldout_metric
    life = own.lifetimes
    row: dict[str, float | int | str] = {
        "run": name,
        "seed": run.experiment.seed,
        "accuracy_12h": float(accuracy[: run.num_rounds // 2][-1]),
        "accuracy_24h": float(accuracy[-1]),
        "accuracy_mean": float(np.nanmean(accuracy)),
        "uploads": int(run.curve("num_received").sum()),
        "asked": int(run.curve("num_computed").sum()),
        "energy_j": run.last("cumulative_energy_j"),
        "listening_j": float(run.curve("downlink_energy_j").sum()),
        "dead_device_hours": own.dead_device_hours,
        "most_dead": life["most_dead"],
        "dead_at_the_end": life["dead_at_the_end"],
    }
    for what in ("first_dead", "half_dead"):
        found = life[what]
        row[f"{what}_h"] = "" if found is None else found["clock_s"] / HOUR_S
        is_known = found is not None and "heldout_accuracy" in found
        row[f"{what}_accuracy"] = 100.0 * found["heldout_accuracy"] if is_known else ""
    return row


def table_of(rows: Sequence[dict[str, float | int | str]]) -> Table:
    """Return a row for each way to plan: means with 95 % intervals, differences to the first by seed."""
    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 2, 0, 0))
    headings = (
        "run",
        "accuracy",
        "− the first",
        "over the day",
        "− the first",
        "dead device-hours",
        "− the first",
        "most dead",
    )
    for heading in (*headings, "first dead, h", "joules", "uploads"):
        table.add_column(heading, no_wrap=True, justify="left" if heading == "run" else "right")
    names = list(dict.fromkeys(str(row["run"]) for row in rows))
    by_name = {name: {row["seed"]: row for row in rows if row["run"] == name} for name in names}
    first = by_name[names[0]]
    for name, own in by_name.items():
        paired = [seed for seed in own if seed in first]

        def gain(column: str, own: dict = own, paired: list = paired) -> str:
            return str(interval([float(own[s][column]) - float(first[s][column]) for s in paired]))

        def mean(column: str, own: dict = own) -> str:
            return str(interval([float(row[column]) for row in own.values()]))

        died = [float(row["first_dead_h"]) for row in own.values() if row["first_dead_h"] != ""]
        is_first = name == names[0]
        table.add_row(
            name,
            f"{mean('accuracy_24h')} %",
            "" if is_first else gain("accuracy_24h"),
            f"{mean('accuracy_mean')} %",
            "" if is_first else gain("accuracy_mean"),
            mean("dead_device_hours"),
            "" if is_first else gain("dead_device_hours"),
            mean("most_dead"),
            f"{median_interval(died)} ({len(died)} of {len(own)})" if died else "never",
            mean("energy_j"),
            mean("uploads"),
        )
    return table


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, nargs="+", default=list(range(10)))
    parser.add_argument("--out", type=Path, default=Path("day"))
    parser.add_argument("--csv", type=Path, help="a line for each run; default: seeds.csv in --out")
    parser.add_argument("--plot", type=Path, help="the picture; default: day.png in --out")
    parser.add_argument("--set", "-s", action="append", default=[], help="change a setting of all runs")
    given = parser.parse_args(words)
    torch.set_num_threads(1)
    console = Console()
    runs = []
    for seed in given.seeds:
        for scheme in SCHEMES:
            runs.append(run_one(scheme, seed, given.out, given.set))
            if console.is_terminal:
                console.print(f"{len(runs)} of {len(given.seeds) * len(SCHEMES)} runs", end="\r")
    runs.sort(key=lambda run: SCHEMES.index(run.path.name.rsplit("-seed", 1)[0]))
    rows = [row_of(name, run) for name, group in group_by_name(runs).items() for run in group]
    table = given.csv or given.out / "seeds.csv"
    with table.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(
            {key: f"{v:.6g}" if isinstance(v, float) else v for key, v in row.items()} for row in rows
        )
    print_tables(console, table_of(rows))
    title = f"24 hours on capacitors of 151 J, from 18 o'clock: {len(given.seeds)} seeds"
    picture = plot_batteries(runs, given.plot or given.out / "day.png", title=title)
    console.print(f"\nBy seed: {table}. Picture: {picture}. Run folders: {given.out}/", highlight=False)


if __name__ == "__main__":
    main()
