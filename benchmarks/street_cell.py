"""URAL (optimal) and its rivals in the 5G street cell on real Fashion-MNIST, over seeds.

    python benchmarks/street_cell.py [--power-set measured-x55] [--out runs/umi] [--data-dir D] [--seeds ...]

Two rules that know the channel, threshold and value-rate, and two that do not, NUFM-Greedy and RU-Random.
What is not there yet is run and what was stopped is resumed, seed by seed. Then a line for each run is
written to benchmarks/data/street_cell.csv, or street_cell_measured-x55.csv with the watts of a measured modem
(of seeds that all schemes have finished), and the lines of docs/results.toml are printed: medians with their
95 % intervals, and ratios to URAL (optimal) on the same seeds. Models are evaluated after every fifth round.
--report reads what is finished and runs nothing.
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
from preset_runs import folder_of, parse_arguments, runs_of, with_power_set

SCHEMES = ("ural", "threshold", "value-rate", "nufm-greedy", "ru-random")
KEYS = ("ural", "threshold", "value_rate", "greedy", "random")  # in docs/results.toml
TARGET = 0.6
SETTINGS = ("evaluation.every=5",)
DATA = Path(__file__).parent / "data"


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
    radio, out, file_name = with_power_set(arguments.power_set, arguments.out, "street_cell")
    console = Console()
    presets = [f"umi/{scheme}" for scheme in SCHEMES]
    if not arguments.report:
        runs_of(
            presets, arguments.seeds, out, (*SETTINGS, *radio), data_dir=arguments.data_dir, console=console
        )
    runs = finished(out, arguments.seeds)
    print_tables(console, final_table(runs), cost_table(runs, target=TARGET))
    rows = seed_costs(runs, target=TARGET)
    write_seed_costs(rows, DATA / f"{file_name}.csv")
    names = list(dict.fromkeys(str(row["run"]) for row in rows))
    for key, value in lines_of(rows, dict(zip(names, KEYS, strict=True))).items():
        console.print(f'{key} = "{value}"', highlight=False, markup=False)
    plot_costs(runs, out / "comparison.png", target=TARGET)


if __name__ == "__main__":
    main()
