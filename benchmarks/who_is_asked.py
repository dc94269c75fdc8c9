"""Who is asked to listen and compute: accuracy and joules by num_candidates, with and without a memory.

    python benchmarks/who_is_asked.py [--power-set measured-x55] [--out runs/asked] [--seeds 0 1 2]

URAL (optimal) on the digits over the demo's street cell (30 training devices, 10 blocks, 25 rounds), which
asks everybody by default. Writes docs/figures/who_is_asked.png and, a line for each run, .csv, or
who_is_asked_measured-x55 with the watts of a measured modem; prints the table of docs/results.toml:
differences in accuracy and ratios of joules to asking everybody, paired by seed.
"""

from __future__ import annotations

from pathlib import Path

from fedwave.demo.same_accuracy import SETTINGS
from fedwave.experiments import load_experiment
from fedwave.intervals import interval, median_interval
from fedwave.plots.style import COLOURS, new_figure, save_figure
from fedwave.runs.compare import FinishedRun, read_run
from fedwave.runs.run import resume_run, run_experiment
from fedwave.runs.seed_costs import SeedRow, seed_costs, write_seed_costs
from paired_costs import of, paired, times
from preset_runs import argument_parser, with_power_set

ROOT = Path(__file__).parents[1]
EVERYBODY = "everybody"
COUNTS = (6, 10, 15, 20)
NUM_DEVICES = 30
KINDS = {"drawn": (), "remembered": ("selection.policy.remembers=true",)}
TARGET = 0.8
FIGURES = ROOT / "docs" / "figures"


def settings() -> dict[str, tuple[str, ...]]:
    """Return what each setting changes, by its name."""
    few = {
        f"{count} {kind}": (f"selection.policy.num_candidates={count}", *options)
        for count in COUNTS
        for kind, options in KINDS.items()
    }
    return {EVERYBODY: (), **few}


def run_one(name: str, changes: tuple[str, ...], seed: int, out: Path) -> FinishedRun:
    """Return a finished run; what is there is read, what was stopped is resumed."""
    folder = out / f"{name.replace(' ', '-')}-seed{seed}"
    if (folder / "config.toml").exists():
        resume_run(folder)
    else:
        given = [*SETTINGS, *changes, f"seed={seed}", f"name={name}", "execution.workers=1"]
        run_experiment(load_experiment("digits/ural", given), folder)
    return read_run(folder)


def draw(rows: list[SeedRow], path: Path) -> None:
    """Draw accuracy, joules and listening joules against the number asked."""
    figure, axes = new_figure(3, width=3.3, height=3.1)
    titles = {
        "accuracy": ("accuracy after 25 rounds [%]", 100.0),
        "energy_j": ("joules of all devices", 1.0),
        "listening_j": ("joules of listening", 1.0),
    }
    for axis, (column, (title, scale)) in zip(axes, titles.items(), strict=True):
        for kind, colour in zip(KINDS, COLOURS, strict=False):
            places, medians, spread = [], [], []
            for count in (*COUNTS, NUM_DEVICES):
                name = EVERYBODY if count == NUM_DEVICES else f"{count} {kind}"
                values = [scale * float(row[column]) for row in of(rows, name).values()]
                found = median_interval(values)
                places.append(count)
                medians.append(found.median)
                spread.append((found.median - found.low, found.high - found.median))
                shift = 0.25 if kind == "drawn" else -0.25
                axis.plot([count + shift] * len(values), values, ".", color=colour, alpha=0.3, markersize=4)
            error = list(zip(*spread, strict=True))
            axis.errorbar(
                places, medians, error, color=colour, capsize=3, marker="o", markersize=4, label=kind
            )
        axis.set(xlabel=f"devices asked, of {NUM_DEVICES}", title=title)
        axis.set_xticks([*COUNTS, NUM_DEVICES])
    for axis in axes[1:]:
        axis.set_ylim(bottom=0)
    axes[0].legend(loc="lower right", fontsize=8)
    save_figure(figure, path)


def main() -> None:
    arguments = argument_parser(__doc__, out=Path("runs/asked"), seeds=range(10)).parse_args()
    radio, out, file_name = with_power_set(arguments.power_set, arguments.out, "who_is_asked")
    runs = [
        run_one(name, (*changes, *radio), seed, out)
        for seed in arguments.seeds
        for name, changes in settings().items()
    ]
    rows = seed_costs(runs, target=TARGET)
    write_seed_costs(rows, FIGURES / f"{file_name}.csv")
    draw(rows, FIGURES / f"{file_name}.png")
    base = of(rows, EVERYBODY)
    print("| asked | accuracy | − everybody | joules, of everybody's | listening | uploads a round |")
    print("|---|---|---|---|---|---|")
    for name in settings():
        own = of(rows, name)
        accuracy = interval([100 * float(row["accuracy"]) for row in own.values()])
        change = interval([100 * (float(own[s]["accuracy"]) - float(base[s]["accuracy"])) for s in own])
        uploads = median_interval([float(row["uploads"]) / int(row["rounds"]) for row in own.values()])
        cells = ("–", "1", "1")
        if name != EVERYBODY:
            ratios = (times(paired(rows, name, EVERYBODY, column)) for column in ("energy_j", "listening_j"))
            cells = (f"{change} points", *ratios)
        print(f"| {name} | {accuracy} % | {' | '.join(cells)} | {uploads.median:.1f} |")


if __name__ == "__main__":
    main()
