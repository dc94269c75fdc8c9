"""The same accuracy over a 5G street cell, and what it costs five schemes on the same seeds.

URAL (optimal) decides who uploads, on which block, at what power and speed, to a proven optimum. Threshold
and value-rate are simple rules that know the channel: twenty SNRs that devices must reach, the best kept, and
the largest contributions times rate. NUFM-Greedy takes the most useful devices, each with the power that
suits itself; RU-Random draws devices, blocks and powers. A seed is a partition, a first model and a cell, the
same for all five.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from torch import nn

from fedwave.plots.costs import plot_costs
from fedwave.runs.compare import FinishedRun, common_target, group_by_name, paired_ratio
from fedwave.runs.seed_costs import seed_costs, write_seed_costs
from fedwave.runs.sweep import SweepRun, plan_sweep

# First the optimum, then two rules that know the channel, then two that do not: ``heading`` counts on it.
SCHEMES = ("ural", "threshold", "value-rate", "nufm-greedy", "ru-random")
SEEDS = tuple(range(10))
# Chosen for a good accuracy in few rounds, and stated in docs/results.md: a small network with GroupNorm,
# rates of 0.02, contributions scaled to a mean of 1, and weights near those that `fedwave cell` suggests for
# its 167,232 bits.
SETTINGS = (
    "num_rounds=25",
    "model.kind=fedwave.demo.same_accuracy:small_net",
    "algorithm.inner_lr=0.02",
    "algorithm.meta_lr=0.02",
    "cell.preset=umi-3.5ghz",
    "cell.num_blocks=10",
    "cell.contribution_scale=normalised",
    "cell.energy_weight=1.5",
    "cell.delay_weight=30.0",
)
BY_SEED = "seeds.csv"
PICTURE = "comparison.png"


def small_net(input_shape: tuple[int, ...], num_outputs: int) -> nn.Module:
    """Return the network that the demo trains."""
    channels, height, width = input_shape
    return nn.Sequential(
        nn.Conv2d(channels, 8, 3, padding=1),
        nn.GroupNorm(2, 8),
        nn.Tanh(),
        nn.Flatten(),
        nn.Linear(8 * height * width, num_outputs),
    )


def plan_demo(
    out: Path | str, *, seeds: Sequence[int] = SEEDS, changes: Sequence[str] = ()
) -> list[SweepRun]:
    """Return the runs of all schemes, seed by seed, to be made by ``run_sweep``; ``changes`` are settings."""
    plans = [
        plan_sweep(f"digits/{scheme}", fixed=[*SETTINGS, *changes], seeds=seeds, out=out)
        for scheme in SCHEMES
    ]
    return [run for of_seed in zip(*plans, strict=True) for run in of_seed]


def in_words(runs: Sequence[FinishedRun]) -> str:
    """Say what the same accuracy cost the others on the same seeds, in multiples of what URAL paid."""
    target = common_target(runs)
    ural, *others = group_by_name(runs).items()
    lines = [f"Until {target:.0%}, the best that all {len(runs)} runs reach, on the same seeds (95 %):"]
    for name, group in others:
        time, energy = (paired_ratio(group, ural[1], cost, target=target) for cost in ("delay_s", "energy_j"))
        lines.append(f"  {name}: {time} the seconds, {energy} the joules of {ural[0]}")
    return "\n".join(lines)


def heading(runs: Sequence[FinishedRun]) -> str:
    """Say what the picture shows: what simple rules and blind allocation take beside the proven optimum."""
    target = common_target(runs)
    ural, *others = group_by_name(runs).values()
    times = [paired_ratio(group, ural, "delay_s", target=target).mean for group in others]
    return (
        f"Rules that know the channel take {min(times[:2]):.2f} to {max(times[:2]):.2f} times the seconds of "
        f"the proven optimum, blind ones {min(times[2:]):.1f} to {max(times[2:]):.1f}"
    )


def write_demo(runs: Sequence[FinishedRun], out: Path) -> Path:
    """Write what each seed cost and the picture into the folder; return where the picture is."""
    write_seed_costs(seed_costs(runs, target=common_target(runs)), out / BY_SEED)
    return plot_costs(runs, out / PICTURE, title=heading(runs))
