"""What `make demo` runs: the same accuracy over a 5G street cell, and what it costs five schemes.

URAL (optimal) decides who uploads, on which block, at what power and speed, to a proven optimum. Threshold
and value-rate are simple rules that know the channel: twenty SNRs that devices must reach, the best kept, and
the largest contributions times rate. NUFM-Greedy takes the most useful devices, each with the power that
suits itself; RU-Random draws devices, blocks and powers. Ten seeds: ten partitions, first models and cells,
the same for all. Settings of your own may follow, e.g. cell.radio.power_set=measured-x55.
"""

from __future__ import annotations

import multiprocessing
import os
import shutil
import sys
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from torch import nn

from fedwave import cost_table, final_table, load_experiment, read_run, run_experiment
from fedwave.cli.console import print_tables
from fedwave.plots.costs import plot_costs
from fedwave.runs.compare import FinishedRun, common_target, group_by_name, paired_ratio
from fedwave.runs.seed_costs import seed_costs, write_seed_costs

OUT = Path("demo")
SCHEMES = ("ural", "threshold", "value-rate", "nufm-greedy", "ru-random")
SEEDS = range(10)
# Chosen for a good accuracy in few rounds, and stated in docs/results.md: a small network with GroupNorm,
# rates of 0.02, contributions scaled to a mean of 1, and weights near those that `fedwave cell` suggests for
# its 167,232 bits.
SETTINGS = (
    "num_rounds=25",
    "model.kind=demo:small_net",
    "algorithm.inner_lr=0.02",
    "algorithm.meta_lr=0.02",
    "cell.preset=umi-3.5ghz",
    "cell.num_blocks=10",
    "cell.contribution_scale=normalised",
    "cell.energy_weight=1.5",
    "cell.delay_weight=30.0",
)
INTRODUCTION = """\
[bold]fedwave demo[/bold]: 60 devices hold two kinds of handwritten digits each. 30 of them
train a network over a 5G street cell with 10 radio blocks, the others test it.
Five schemes, ten seeds each, 25 rounds: about two minutes on two cores.
"""
NEXT = """\
Try next (after `. .venv/bin/activate`):
  fedwave run digits/ural     one run: its tables, model and curves
  fedwave new my-project      an experiment, a cell and a model to start from
  fedwave cell umi-3.5ghz     the link budget behind these joules and seconds
"""


def small_net(input_shape: tuple[int, ...], num_outputs: int) -> nn.Module:
    channels, height, width = input_shape
    return nn.Sequential(
        nn.Conv2d(channels, 8, 3, padding=1),
        nn.GroupNorm(2, 8),
        nn.Tanh(),
        nn.Flatten(),
        nn.Linear(8 * height * width, num_outputs),
    )


def run_one(scheme: str, seed: int, out: Path, changes: list[str]) -> Path:
    torch.set_num_threads(1)  # runs stand side by side, one on each core
    settings = [*SETTINGS, *changes, f"seed={seed}", "execution.workers=1"]
    experiment = load_experiment(f"digits/{scheme}", settings)
    return run_experiment(experiment, out / f"{scheme}-seed{seed}").path


def run_all(out: Path, console: Console, changes: list[str]) -> list[Path]:
    jobs = [(scheme, seed) for seed in SEEDS for scheme in SCHEMES]
    columns = (TextColumn("training"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    workers = ProcessPoolExecutor(
        min(os.cpu_count() or 1, len(jobs)), mp_context=multiprocessing.get_context("spawn")
    )
    with workers, Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task("", total=len(jobs))
        futures = {
            workers.submit(run_one, scheme, seed, out, changes): (scheme, seed) for scheme, seed in jobs
        }
        for future in as_completed(futures):
            future.result()
            progress.advance(task)
    return [out / f"{scheme}-seed{seed}" for scheme in SCHEMES for seed in SEEDS]


def main() -> None:
    console = Console()
    console.print(INTRODUCTION, highlight=False)
    shutil.rmtree(OUT, ignore_errors=True)
    runs = [read_run(path) for path in run_all(OUT, console, sys.argv[1:])]
    print_tables(console, final_table(runs), cost_table(runs))
    console.print(f"\n{in_words(runs)}\n", highlight=False)
    write_seed_costs(seed_costs(runs, target=common_target(runs)), OUT / "seeds.csv")
    picture = plot_costs(runs, OUT / "comparison.png", title=heading(runs))
    console.print(
        f"Picture: {picture}. By seed: {OUT}/seeds.csv. Run folders: {OUT}/\n\n{NEXT}",
        highlight=False,
        end="",
    )


def in_words(runs: list[FinishedRun]) -> str:
    """Say what the same accuracy cost the others on the same seeds, in multiples of what URAL paid."""
    target = common_target(runs)
    ural, *others = group_by_name(runs).items()
    lines = [f"Until {target:.0%}, the best that all {len(runs)} runs reach, on the same seeds (95 %):"]
    for name, group in others:
        time, energy = (paired_ratio(group, ural[1], cost, target=target) for cost in ("delay_s", "energy_j"))
        lines.append(f"  {name}: {time} the seconds, {energy} the joules of {ural[0]}")
    return "\n".join(lines)


def heading(runs: list[FinishedRun]) -> str:
    """Say what the picture shows: what simple rules and blind allocation take beside the proven optimum."""
    target = common_target(runs)
    ural, *others = group_by_name(runs).values()
    times = [paired_ratio(group, ural, "delay_s", target=target).mean for group in others]
    return (
        f"Rules that know the channel take {min(times[:2]):.2f} to {max(times[:2]):.2f} times the seconds of "
        f"the proven optimum, blind ones {min(times[2:]):.1f} to {max(times[2:]):.1f}"
    )


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))  # where "demo:small_net" is found, by the workers too
    main()
