"""What `make demo` runs: NUFM against Per-FedAvg on scikit-learn's digits, from Python.

Prints a table, and writes the run folders and demo/comparison.png.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from rich.console import Console

from fedwave.cli.compare import plot_runs, print_runs
from fedwave.cli.progress import ProgressBar
from fedwave.experiments import load_experiment
from fedwave.experiments.compare import read_run
from fedwave.experiments.run import run_experiment

OUT = Path("demo")


def main() -> None:
    console = Console()
    shutil.rmtree(OUT, ignore_errors=True)
    console.print("[bold]fedwave demo[/bold]: 60 devices with two digits each; 30 train, 30 test.\n")
    runs = []
    with ProgressBar(console) as bar:
        for preset in ("digits/nufm", "digits/per-fedavg"):
            for seed in (0, 1, 2):
                experiment = load_experiment(preset, [f"seed={seed}"])
                folder = OUT / f"{preset.replace('/', '-')}-seed{seed}"
                runs.append(read_run(run_experiment(experiment, folder, observers=[bar]).path))
    console.print()
    print_runs(runs, console)
    picture = plot_runs(runs, OUT / "comparison.png")
    console.print(f"\nPicture: {picture}. Run folders: {OUT}/. Next: fedwave run --help")


if __name__ == "__main__":
    main()
