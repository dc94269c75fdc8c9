"""URAL (optimal) and its rivals in the 5G street cell on real Fashion-MNIST, over seeds.

    python benchmarks/street_cell.py [--out runs/umi] [--data-dir DIR] [--seeds 0 1 2 3 4 5 6 7 8 9]

Two rules that know the channel, threshold and value-rate, and two that do not, NUFM-Greedy and RU-Random.
What is not there yet is run and what was stopped is resumed, seed by seed. Then a line for each run is
written to benchmarks/data/street_cell.csv (of seeds that all schemes have finished), and the lines of
docs/results.toml are printed: medians with their 95 % intervals, and ratios to URAL (optimal) on the same
seeds. Models are evaluated after every fifth round. --report reads what is finished and runs nothing.
"""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from fedwave.cli.console import print_tables
from fedwave.cli.run_tables import cost_table, final_table
from fedwave.plots.costs import plot_costs
from fedwave.runs.compare import FinishedRun, read_run
from fedwave.runs.seed_costs import seed_costs, write_seed_costs
from paired_costs import lines_of
from preset_runs import folder_of, parse_arguments, runs_of

SCHEMES = ("ural", "threshold", "value-rate", "nufm-greedy", "ru-random")
KEYS = ("ural", "threshold", "value_rate", "greedy", "random")  # in docs/results.toml
TARGET = 0.6
SETTINGS = ("evaluation.every=5",)
DATA = Path(__file__).parent / "data" / "street_cell.csv"


def finished(out: Path, seeds: list[int]) -> list[FinishedRun]:
    """Return the runs of the seeds that every scheme has finished."""
    whole = [
        seed for seed in seeds if all((path_of(out, one, seed) / "summary.json").exists() for one in SCHEMES)
    ]
    return [read_run(path_of(out, scheme, seed)) for scheme in SCHEMES for seed in whole]


def path_of(out: Path, scheme: str, seed: int) -> Path:
    return folder_of(out, f"umi/{scheme}", seed)


def main() -> None:
    arguments = parse_arguments(__doc__, out=Path("runs/umi"), seeds=range(10))
    console = Console()
    presets = [f"umi/{scheme}" for scheme in SCHEMES]
    if not arguments.report:
        runs_of(
            presets, arguments.seeds, arguments.out, SETTINGS, data_dir=arguments.data_dir, console=console
        )
    runs = finished(arguments.out, arguments.seeds)
    print_tables(console, final_table(runs), cost_table(runs, target=TARGET))
    rows = seed_costs(runs, target=TARGET)
    write_seed_costs(rows, DATA)
    names = list(dict.fromkeys(str(row["run"]) for row in rows))
    for key, value in lines_of(rows, dict(zip(names, KEYS, strict=True))).items():
        console.print(f'{key} = "{value}"', highlight=False, markup=False)
    plot_costs(runs, arguments.out / "comparison.png", target=TARGET)


if __name__ == "__main__":
    main()
