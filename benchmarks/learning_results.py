"""NUFM, Per-FedAvg and FedAvg on real Fashion-MNIST in the paper's setting, on the same partitions.

    python benchmarks/learning_results.py [--out runs/fashion-mnist] [--data-dir DIR] [--seeds 0 1 2 3 4]

Runs what is not there yet and resumes what was stopped, then prints the final held-out accuracies with 95 %
confidence intervals and asserts that NUFM's mean lies within 60-78 % and above Per-FedAvg's.
"""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from fedwave.plots.runs import plot_runs
from fedwave.runs.compare import group_by_name, interval, paired_difference
from fedwave.runs.report import final_table, print_tables
from preset_runs import parse_arguments, runs_of

PRESETS = ("paper/nufm", "paper/per-fedavg", "paper/fedavg")


def main() -> None:
    arguments = parse_arguments(__doc__, out=Path("runs/fashion-mnist"))
    console = Console()
    runs = runs_of(PRESETS, arguments.seeds, arguments.out, data_dir=arguments.data_dir, console=console)
    print_tables(console, final_table(runs))
    groups = group_by_name(runs)
    for name, group in groups.items():
        values = ", ".join(f"{100 * run.last('heldout_accuracy'):.1f}" for run in group)
        console.print(f"{name}: {values} %")
    nufm, per_fedavg, fedavg = (groups[name] for name in ("NUFM", "Per-FedAvg", "FedAvg"))
    for name, other in (("Per-FedAvg", per_fedavg), ("FedAvg", fedavg)):
        difference = paired_difference(nufm, other, "heldout_accuracy")
        console.print(
            f"NUFM minus {name}, paired by seed: {100 * difference.mean:+.2f} "
            f"± {100 * difference.half_width:.2f} points"
        )
    plot_runs(runs, arguments.out / "comparison.png")
    mean = interval([run.last("heldout_accuracy") for run in nufm]).mean
    assert 0.60 <= mean <= 0.78, f"NUFM's mean accuracy {mean:.3f} is outside 60-78 %"
    assert mean > interval([run.last("heldout_accuracy") for run in per_fedavg]).mean


if __name__ == "__main__":
    main()
