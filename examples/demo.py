"""What `make demo` runs: federated meta-learning over the paper's radio cell, on scikit-learn's digits.

URAL (joint selection and allocation, solved to a proven optimum) beside NUFM-Greedy and RU-Random: accuracy,
joules and seconds side by side, and demo/comparison.png.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from rich.console import Console

from fedwave import cost_table, final_table, load_experiment, plot_runs, read_run, run_experiment
from fedwave.runs.progress import ProgressBar
from fedwave.runs.report import print_tables

OUT = Path("demo")
SCHEMES = ("ural", "nufm-greedy", "ru-random")
SEEDS = (0, 1, 2)


def main() -> None:
    console = Console()
    shutil.rmtree(OUT, ignore_errors=True)
    console.print(
        "[bold]fedwave demo[/bold]: 60 devices hold two kinds of digits each; 30 train over a cell with 10\n"
        "radio blocks (the paper's Table III, normalised units), 30 test what was learnt.\n"
    )
    runs = []
    with ProgressBar(console) as bar:
        for scheme in SCHEMES:
            for seed in SEEDS:
                experiment = load_experiment(f"digits/{scheme}", [f"seed={seed}"])
                folder = OUT / f"{scheme}-seed{seed}"
                runs.append(read_run(run_experiment(experiment, folder, observers=[bar]).path))
    console.print()
    print_tables(console, final_table(runs), cost_table(runs))
    picture = plot_runs(runs, OUT / "comparison.png")
    console.print(f"\nPicture: {picture}. Run folders: {OUT}/. Next: fedwave --help, fedwave presets")


if __name__ == "__main__":
    main()
