"""URAL (optimal) and its rivals in the 5G street cell on real Fashion-MNIST, over seeds.

    python benchmarks/street_cell.py [--power-set measured-x55] [--out runs/umi] [--data-dir D] [--seeds ...]
    python benchmarks/street_cell.py --accesses [--out runs/umi] [--data-dir D] [--seeds ...]

Two rules that know the channel, threshold and value-rate, and two that do not, NUFM-Greedy and RU-Random.
What is not there yet is run and what was stopped is resumed, seed by seed. Then a line for each run is
written to benchmarks/data/street_cell.csv, or street_cell_measured-x55.csv with the watts of a measured modem
(of seeds that all schemes have finished), and the lines of docs/results.toml are printed: medians with their
95 % intervals, and ratios to URAL (optimal) on the same seeds. Models are evaluated after every fifth round.
With --accesses the band is shared in other ways (docs/allocation-accesses.md): by the optimum first, also
with as many uploads as blocks at most, then with blocks that are handed on, then by the threshold rule. These
runs end when they reach the target, after 100 rounds at the latest; their lines go to street_accesses.csv.
--report reads what is finished and runs nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from fedwave.cli.console import print_tables
from fedwave.cli.run_tables import cost_table, final_table
from fedwave.intervals import median_interval
from fedwave.plots.costs import plot_costs
from fedwave.runs.compare import FinishedRun
from fedwave.runs.seed_costs import SeedRow, seed_costs, write_seed_costs
from paired_costs import lines_of, of, paired, times
from preset_runs import Arm, argument_parser, finished_runs, run_arms, with_power_set

SCHEMES = ("ural", "threshold", "value-rate", "nufm-greedy", "ru-random")
KEYS = ("ural", "threshold", "value_rate", "greedy", "random")  # in docs/results.toml
TARGET = 0.6
SETTINGS = ("evaluation.every=5",)
DATA = Path(__file__).parent / "data"
NUM_BLOCKS = 20  # of the street cell
ONE_BLOCK = "one block"
TARGETS = ("target_time_s", "target_energy_j")
UNTIL_TARGET = (f"stop.accuracy={TARGET}", "num_rounds=100")


def access_arm(title: str, access: str, *settings: str, preset: str = "umi/ural") -> Arm:
    """Return the street cell with another access; the title is the name of its runs, too."""
    folder = title.replace(", ", "-").replace(" ", "-")
    return Arm(folder, preset, (f"name={title}", f"cell.access={access}", *UNTIL_TARGET, *settings))


LIMIT = f"cell.max_uploads={NUM_BLOCKS}"
HANDED_ON = "cell.work_conserving=true"
# In the order of importance: a group is run over all seeds before the next one begins.
ACCESS_ARMS: tuple[tuple[Arm, ...], ...] = (
    (
        access_arm(ONE_BLOCK, "one-block"),
        access_arm("blocks", "blocks"),
        access_arm(f"slots, {NUM_BLOCKS} uploads", "tdma", LIMIT),
        access_arm(f"shared band, {NUM_BLOCKS} uploads", "shared-band", LIMIT),
        access_arm("slots", "tdma"),
        access_arm("shared band", "shared-band"),
    ),
    (
        access_arm("one block, handed on", "one-block", HANDED_ON),
        access_arm("blocks, handed on", "blocks", HANDED_ON),
    ),
    (
        access_arm("one block, threshold", "one-block", preset="umi/threshold"),
        access_arm("blocks, threshold", "blocks", preset="umi/threshold"),
        access_arm("shared band, threshold", "shared-band", preset="umi/threshold"),
        access_arm("slots, threshold", "tdma", preset="umi/threshold"),
    ),
)


def print_accesses(console: Console, rows: Sequence[SeedRow]) -> None:
    """Print the table of docs/results.toml: what each access takes until the target, by one block each."""
    lines = ["| | rounds | uploads a round | time | energy | times the time | times the energy | seeds |"]
    lines.append("|---|---|---|---|---|---|---|---|")
    for name in dict.fromkeys(str(row["run"]) for row in rows):
        own = list(of(rows, name).values())
        rounds = median_interval([float(row["rounds"]) for row in own])
        uploads = median_interval([float(row["uploads"]) / float(row["rounds"]) for row in own])
        time_s, energy_j = (
            median_interval([float(row[column]) for row in own if row[column] != ""]) for column in TARGETS
        )
        ratios = [times(paired(rows, name, ONE_BLOCK, column)) for column in TARGETS]
        cells = [name, f"{rounds.median:g}", f"{uploads.median:.0f}", f"{time_s} s", f"{energy_j} J"]
        lines.append(f"| {' | '.join([*cells, *(ratios if name != ONE_BLOCK else ('', ''))])} | {len(own)} |")
    console.print("\n".join(lines), highlight=False, markup=False, soft_wrap=True)


def report(console: Console, runs: Sequence[FinishedRun]) -> list[SeedRow]:
    """Print the tables of the runs and return a line for each."""
    print_tables(console, final_table(runs), cost_table(runs, target=TARGET))
    return seed_costs(runs, target=TARGET)


def main() -> None:
    parser = argument_parser(__doc__, out=Path("runs/umi"), seeds=range(10))
    parser.add_argument("--accesses", action="store_true", help="other ways to share the band")
    arguments = parser.parse_args()
    if arguments.accesses and arguments.power_set is not None:
        parser.error("--accesses has the preset's own radio alone. Leave out --power-set.")
    radio, out, file_name = with_power_set(arguments.power_set, arguments.out, "street_cell")
    console = Console()
    schemes = tuple(Arm(scheme, f"umi/{scheme}") for scheme in SCHEMES)
    groups = ACCESS_ARMS if arguments.accesses else (schemes,)
    for arms in () if arguments.report else groups:
        run_arms(
            arms,
            arguments.seeds,
            out,
            (*SETTINGS, *radio),
            data_dir=arguments.data_dir,
            console=console,
        )
    if arguments.accesses:
        own = [
            report(console, runs) for arms in groups if (runs := finished_runs(arms, arguments.seeds, out))
        ]
        rows = [row for group in own for row in group]
        write_seed_costs(rows, DATA / "street_accesses.csv")
        print_accesses(console, rows)
        return
    runs = finished_runs(schemes, arguments.seeds, out)
    rows = report(console, runs)
    write_seed_costs(rows, DATA / f"{file_name}.csv")
    names = list(dict.fromkeys(str(row["run"]) for row in rows))
    for key, value in lines_of(rows, dict(zip(names, KEYS, strict=True))).items():
        console.print(f'{key} = "{value}"', highlight=False, markup=False)
    plot_costs(runs, out / "comparison.png", target=TARGET)


if __name__ == "__main__":
    main()
