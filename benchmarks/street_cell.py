"""URAL, NUFM-Greedy and RU-Random in the 5G street cell on real Fashion-MNIST, over seeds.

    python benchmarks/street_cell.py [--out runs/umi] [--data-dir DIR] [--seeds 0 1 2 3 4]

Runs what is not there yet and resumes what was stopped, then prints accuracy, seconds and joules with 95 %
confidence intervals, what 70 % accuracy cost, and the lines of docs/results.toml.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from rich.console import Console

from fedwave.cli.console import print_tables
from fedwave.cli.run_tables import cost_table, final_table
from fedwave.intervals import Interval, interval
from fedwave.plots.runs import plot_runs
from fedwave.runs.compare import FinishedRun, group_by_name
from preset_runs import parse_arguments, runs_of

SCHEMES = {"ural": "umi/ural", "greedy": "umi/nufm-greedy", "random": "umi/ru-random"}
TARGET = 0.7


def over(runs: Sequence[FinishedRun], value: Callable[[FinishedRun], float]) -> Interval:
    return interval([value(run) for run in runs])


def text(found: Interval, unit: str, digits: int = 0) -> str:
    return f"{found.mean:,.{digits}f} ± {found.half_width:,.{digits}f} {unit}"


def median(column: str) -> Callable[[FinishedRun], float]:
    return lambda run: float(np.median(run.curve(column)))


def total(column: str) -> Callable[[FinishedRun], float]:
    return lambda run: float(run.curve(column).sum())


def lines_of(name: str, runs: Sequence[FinishedRun]) -> dict[str, str]:
    """Return what docs/results.toml says of one scheme."""
    reached = [cost for run in runs if (cost := run.cost_of_reaching(TARGET)) is not None]
    to_target = (
        f"{interval([cost.delay_s for cost in reached]).mean:,.0f} s, "
        f"{interval([cost.energy_j for cost in reached]).mean:,.0f} J"
    )
    share = "" if len(reached) == len(runs) else f" ({len(reached)} of {len(runs)} seeds)"
    return {
        f"{name}_accuracy": text(over(runs, lambda run: 100 * run.last("heldout_accuracy")), "%", 1),
        f"{name}_time": text(over(runs, lambda run: run.last("cumulative_delay_s")), "s"),
        f"{name}_energy": text(over(runs, lambda run: run.last("cumulative_energy_j")), "J"),
        f"{name}_to_70": to_target + share,
        f"{name}_round": f"{over(runs, median('delay_s')).mean:.1f} s",
        f"{name}_broadcast": f"{over(runs, median('downlink_time_s')).mean:.1f} s",
        f"{name}_longest_round": f"{max(run.curve('delay_s').max() for run in runs):,.0f} s",
        f"{name}_upload_energy": f"{over(runs, total('upload_energy_j')).mean:,.0f} J",
        f"{name}_computing_energy": f"{over(runs, total('compute_energy_j')).mean:,.0f} J",
        f"{name}_listening_energy": f"{over(runs, total('downlink_energy_j')).mean:,.0f} J",
    }


def main() -> None:
    arguments = parse_arguments(__doc__, out=Path("runs/umi"))
    console = Console()
    runs = runs_of(
        list(SCHEMES.values()), arguments.seeds, arguments.out, data_dir=arguments.data_dir, console=console
    )
    print_tables(console, final_table(runs), cost_table(runs, target=TARGET))
    groups = list(group_by_name(runs).values())
    for name, group in zip(SCHEMES, groups, strict=True):
        for key, value in lines_of(name, group).items():
            console.print(f'{key} = "{value}"', highlight=False, markup=False)
    ural = groups[0]
    for name, group in zip(list(SCHEMES)[1:], groups[1:], strict=True):
        for key, column in (("time", "cumulative_delay_s"), ("energy", "cumulative_energy_j")):
            ratios = [other.last(column) / own.last(column) for own, other in zip(ural, group, strict=True)]
            found = interval(ratios)
            console.print(
                f'{name}_{key}_ratio = "{found.mean:.1f} ± {found.half_width:.1f}"', highlight=False
            )
    plot_runs(runs, arguments.out / "comparison.png")


if __name__ == "__main__":
    main()
