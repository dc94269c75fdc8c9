"""Long-term planners against the bound that no policy within its budget beats: utility and worst overdraw.

    python benchmarks/long_term.py [--seeds 10] [--rounds 100] [--report]

Two cells of 20 devices and 5 blocks without training, all planners on the same trace of each seed:

- made-up: the paper's cell drawn anew every round (``paper-redrawn``), u ~ Exp(10), 0.15 J a round;
- street: ``umi-3.5ghz`` (places stay, fading is drawn), with listening, circuit power and sleep; each device
  has a mean contribution of its own (log-normal, 0.8 nats) and u ~ Exp(mean); 0.2 J a round, 0.3 a second.

Writes a line for each run to benchmarks/data/long_term.csv and prints the tables of docs/results.toml;
``--report`` prints them from that file.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from fedwave import load_cell
from fedwave.intervals import median_interval
from fedwave.longterm.bound import LongTermBound, long_term_bound
from fedwave.longterm.trace import Trace, replay, trace_of_cell
from fedwave.server import (
    CappedRounds,
    CellPlanner,
    ConstantPrices,
    DriftPlusPenalty,
    Eafl,
    Planner,
    UntilSpent,
)

DATA = Path(__file__).parent / "data" / "long_term.csv"
NUM_DEVICES, NUM_BLOCKS = 20, 5
BUDGET_J = {"made-up": 0.15, "street": 0.2}
VS = {"made-up": (0.03, 0.1, 0.3, 1.0), "street": (0.1, 0.3, 1.0, 3.0)}
THRIFT = 0.6  # share of the budget that a planner plans with which is to keep it in few rounds
NO_LIMIT = "no budget"


def trace_of(cell: str, seed: int, num_rounds: int) -> Trace:
    """Return one cell's trace."""
    rng = np.random.default_rng(seed)
    preset = {"made-up": "paper-redrawn", "street": "umi-3.5ghz"}[cell]
    drawn = load_cell(preset, num_devices=NUM_DEVICES, seed=seed, overrides={"num_blocks": NUM_BLOCKS})
    if cell == "made-up":
        contribution = rng.exponential(10.0, (num_rounds, NUM_DEVICES))
        return trace_of_cell(
            drawn, contribution, energy_weight=0.0, delay_weight=1.0, model_bits=1.0, num_samples=2, seed=seed
        )
    mean = rng.lognormal(0.0, 0.8, NUM_DEVICES)
    contribution = mean * rng.exponential(1.0, (num_rounds, NUM_DEVICES))
    return trace_of_cell(
        drawn, contribution, energy_weight=0.0, delay_weight=0.3, model_bits=1e6, num_samples=20, seed=seed
    )


def planners(cell: str, num_rounds: int, bound: LongTermBound) -> dict[str, Callable[[CellPlanner], Planner]]:
    """Return every planner by its name in the table."""
    budget_j, total_j = BUDGET_J[cell], num_rounds * BUDGET_J[cell]
    middle = VS[cell][1]
    found: dict[str, Callable[[CellPlanner], Planner]] = {NO_LIMIT: lambda planner: planner}
    for v in VS[cell]:
        found[f"drift, V = {v:g}"] = partial(DriftPlusPenalty, budget_j=budget_j, v=v, asks="all")
    for v in VS[cell]:
        found[f"drift, V = {v:g}, asks by price"] = partial(DriftPlusPenalty, budget_j=budget_j, v=v)
    thrifty = partial(DriftPlusPenalty, budget_j=THRIFT * budget_j, v=middle)
    frame = max(num_rounds // 4, 1)
    return {
        **found,
        f"drift, V = {middle:g}, {THRIFT:.0%} of the budget": partial(thrifty, asks="all"),
        f"drift, V = {middle:g}, {THRIFT:.0%} of the budget, asks by price": thrifty,
        f"frames as OCEAN's, V = {middle:g}": partial(
            DriftPlusPenalty, budget_j=budget_j, v=middle, asks="all", frame=frame, growth=1.0
        ),
        "the bound's prices, constant": partial(ConstantPrices, price=bound.prices.tolist()),
        "capped rounds": partial(CappedRounds, budget_j=budget_j),
        "capped rounds that save": partial(CappedRounds, budget_j=budget_j, saves=True),
        "until spent": partial(UntilSpent, total_j=total_j),
        "EAFL": partial(Eafl, total_j=total_j, utility="contribution"),
    }


def measure(cell: str, seed: int, num_rounds: int) -> list[dict[str, object]]:
    """Return a line for each planner on a trace; the bound must hold for those that keep the budget."""
    trace, budget_j = trace_of(cell, seed, num_rounds), BUDGET_J[cell]
    bound = long_term_bound(trace, budget_j)
    lines: list[dict[str, object]] = []
    for name, make in planners(cell, num_rounds, bound).items():
        met = replay(trace, make)
        keeps = met.worst_energy_j <= budget_j * (1.0 + 1e-9)
        assert not keeps or met.mean_utility <= bound.value
        lines.append(
            {
                "cell": cell,
                "seed": seed,
                "planner": name,
                "rounds": num_rounds,
                "budget_j": budget_j,
                "bound": bound.value,
                "utility": met.mean_utility,
                "worst_j": met.worst_energy_j,
                "mean_j": float(met.energy_j.mean()),
                "asked": float(met.num_asked.mean()),
                "uploads": float(met.num_received.mean()),
            }
        )
        print(f"{cell}, seed {seed}: {name}: {met.mean_utility:.2f} of {bound.value:.2f}", flush=True)
    return lines


def table(lines: list[dict[str, str]], cell: str) -> str:
    """Return a cell's table, as docs/results.toml has it."""
    own = [line for line in lines if line["cell"] == cell]
    rows = [
        "| planner | utility a round, of the bound | worst device's joules, of its budget | all devices' "
        "mean | keeps it | asked | uploads |",
        "|---|---|---|---|---|---|---|",
    ]
    for name in dict.fromkeys(line["planner"] for line in own):
        mine = [line for line in own if line["planner"] == name]
        utility = median_interval([float(one["utility"]) / float(one["bound"]) for one in mine])
        worst = median_interval([float(one["worst_j"]) / float(one["budget_j"]) for one in mine])
        mean = float(np.median([float(one["mean_j"]) / float(one["budget_j"]) for one in mine]))
        kept = sum(float(one["worst_j"]) <= float(one["budget_j"]) * (1.0 + 1e-9) for one in mine)
        asked, uploads = (float(np.median([float(one[key]) for one in mine])) for key in ("asked", "uploads"))
        rows.append(
            f"| {name} | {utility.median:.2f} ({utility.low:.2f}–{utility.high:.2f}) | {worst.median:.2f} "
            f"({worst.low:.2f}–{worst.high:.2f}) | {mean:.2f} | {kept} of {len(mine)} | {asked:.1f} "
            f"| {uploads:.1f} |"
        )
    return "\n".join(rows)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--report", action="store_true", help="print the tables of the file that is there")
    given = parser.parse_args()
    if not given.report:
        found = [
            line
            for seed in range(given.seeds)
            for cell in BUDGET_J
            for line in measure(cell, seed, given.rounds)
        ]
        with DATA.open("w", newline="") as file:
            writer = csv.DictWriter(file, list(found[0]), lineterminator="\n")
            writer.writeheader()
            for line in found:
                writer.writerow({key: f"{v:.6g}" if isinstance(v, float) else v for key, v in line.items()})
    with DATA.open() as file:
        lines = list(csv.DictReader(file))
    for cell in BUDGET_J:
        bounds = [float(line["bound"]) for line in lines if line["cell"] == cell]
        print(f"\n[long_term] {cell}: bound {median_interval(bounds).median:.1f}\n\n{table(lines, cell)}")


if __name__ == "__main__":
    main()
