"""Adaptive local steps against every fixed number of them, under equal budgets of seconds or joules.

    python benchmarks/adaptive_steps.py [--seeds 0 1 2 3 4 5 6 7 8 9] [--report]

A small network on the digits over the street cell umi-3.5ghz (30 training devices, 10 blocks), with FedAvg,
Per-FedAvg and NUFM (without penalties, so that uploads go on). The processors are microcontrollers: beside a
phone's upload computing costs next to nothing, and there is nothing to weigh. A seed's budget is what 20
rounds of one local step take on it. What counts is the model after the last round within the budget.

Each run adds its lines to benchmarks/data/adaptive_steps.csv when it ends; what is there is not run again.
--report runs nothing. Prints the table of docs/results.toml and draws docs/figures/adaptive_steps.png.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fedwave.experiments import load_experiment
from fedwave.experiments.build import build_simulation
from fedwave.intervals import interval, ratio_interval
from fedwave.plots.style import COLOURS, new_figure, save_figure
from fedwave.runs.run import play_rounds
from fedwave.units import FloatArray
from paired_costs import times

ROOT = Path(__file__).parents[1]
DATA = ROOT / "benchmarks" / "data" / "adaptive_steps.csv"
FIXED = ("1", "2", "3", "5", "10", "20")
ADAPTIVE = {"adaptive": 5e-5, "adaptive 0.025": 0.025}  # the authors' for CNNs and for convex losses
SCHEMES = {
    "FedAvg": ("scheme=fedavg", "selection.policy=uniform"),
    "Per-FedAvg": ("scheme=per-fedavg", "selection.policy=uniform"),
    "NUFM": ("scheme=ural",),
}
BUDGETS = {"s": ("cumulative_delay_s", "stop.time_s"), "j": ("cumulative_energy_j", "stop.energy_j")}
NUM_ROUNDS = 20
COMMON = (
    "model.kind=mlp",
    "model.hidden=[32]",
    "algorithm.inner_lr=0.1",
    "algorithm.meta_lr=0.1",
    "selection.num_selected=auto",
    "selection.similarity_penalty=0.0",
    "selection.variance_penalty=0.0",
    "cell.preset=umi-3.5ghz",
    "cell.num_blocks=10",
    "cell.method=optimal",
    "cell.energy_weight=1.5",
    "cell.delay_weight=30.0",
    "cell.fleet.cpu=microcontroller",
    "execution.workers=1",
    "execution.chunk_samples=1024",
)
Row = dict[str, Any]


def rounds_of(scheme: str, seed: int, *changes: str, limits: Mapping[str, float]) -> list[Mapping[str, Any]]:
    """Return the rows of a run until all of the limits are passed, each a column with its value."""
    given = [*COMMON, *SCHEMES[scheme], f"seed={seed}", *changes]
    simulation = build_simulation(load_experiment("digits/nufm", given))
    rows: list[Mapping[str, Any]] = []
    for played in play_rounds(simulation, simulation.initial_state()):
        rows.append(played.record.columns)
        if limits and all(rows[-1][column] > limit for column, limit in limits.items()):
            break
    return rows


def within(rows: Sequence[Mapping[str, Any]], budget: str, total: float, steps: str) -> Row:
    """Return a run's line: what it has come to after its last round within the budget."""
    column = BUDGETS[budget][0]
    kept = [row for row in rows if row[column] <= total]
    taus = [int(row.get("num_local_steps", steps)) for row in kept]
    last = kept[-1] if kept else None
    return {
        "accuracy": "" if last is None else last["heldout_accuracy"],
        "loss": "" if last is None else last["heldout_loss"],
        "rounds": len(kept),
        "mean_steps": float(np.mean(taus)) if taus else "",
        "spent": rows[-1][column],
        "total": total,
    }


def run_seed(seed: int, done: set[tuple[str, ...]]) -> Iterable[Row]:
    """Yield the lines of a seed that are not there yet."""
    for scheme in SCHEMES:
        wanted = [(scheme, budget, steps) for steps in (*FIXED, *ADAPTIVE) for budget in BUDGETS]
        if all((*key, str(seed)) in done for key in wanted):
            continue
        base = rounds_of(scheme, seed, f"num_rounds={NUM_ROUNDS}", limits={})
        totals = {budget: float(base[-1][column]) for budget, (column, _) in BUDGETS.items()}
        limits = {BUDGETS[budget][0]: total for budget, total in totals.items()}
        for steps in FIXED:
            many = f"num_rounds={3 * NUM_ROUNDS}"
            tau = f"algorithm.num_local_steps={steps}"
            rows = base if steps == "1" else rounds_of(scheme, seed, tau, many, limits=limits)
            for budget, total in totals.items():
                yield {"scheme": scheme, "budget": budget, "steps": steps, "seed": seed} | within(
                    rows, budget, total, steps
                )
        for steps, phi in ADAPTIVE.items():
            for budget, total in totals.items():
                part = f'algorithm.local_steps={{ kind = "adaptive", phi = {phi} }}'
                many = f"num_rounds={3 * NUM_ROUNDS}"
                rows = rounds_of(scheme, seed, part, many, f"{BUDGETS[budget][1]}={total!r}", limits={})
                yield {"scheme": scheme, "budget": budget, "steps": steps, "seed": seed} | within(
                    rows, budget, total, steps
                )


def read() -> list[Row]:
    """Return the lines that are there."""
    if not DATA.exists():
        return []
    with DATA.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def key_of(row: Row) -> tuple[str, ...]:
    return tuple(str(row[name]) for name in ("scheme", "budget", "steps", "seed"))


def run(seeds: Iterable[int]) -> None:
    """Run what is not there yet, and write each line as soon as it is known."""
    for seed in seeds:
        done = {key_of(row) for row in read()}
        for row in run_seed(seed, done):
            if key_of(row) in done:
                continue
            is_new = not DATA.exists()
            with DATA.open("a", encoding="utf-8", newline="") as file:
                writer = csv.DictWriter(file, list(row), lineterminator="\n")
                if is_new:
                    writer.writeheader()
                writer.writerow(row)


def finished(rows: Sequence[Row]) -> list[Row]:
    """Return the lines of those seeds that have all of them."""
    expected = len(SCHEMES) * len(BUDGETS) * (len(FIXED) + len(ADAPTIVE))
    seeds = sorted({row["seed"] for row in rows}, key=int)
    whole = {seed for seed in seeds if sum(row["seed"] == seed for row in rows) == expected}
    return [row for row in rows if row["seed"] in whole]


def column(rows: Sequence[Row], scheme: str, budget: str, steps: str, name: str) -> FloatArray:
    """Return a column of one setting, in the order of the seeds."""
    own = [row for row in rows if (row["scheme"], row["budget"], row["steps"]) == (scheme, budget, steps)]
    return np.array([float(row[name]) for row in sorted(own, key=lambda row: int(row["seed"]))])


def best_fixed(rows: Sequence[Row], scheme: str, budget: str) -> str:
    """Return the fixed number of steps with the best mean accuracy: known only afterwards."""
    return max(FIXED, key=lambda steps: column(rows, scheme, budget, steps, "accuracy").mean())


def table(rows: Sequence[Row]) -> str:
    """Return the table of docs/results.toml."""
    lines = [
        "| | budget of | best fixed τ | its accuracy | τ = 1 | adaptive, mean τ | accuracy | − best fixed | "
        "loss, of best fixed's | φ = 0.025: mean τ | − best fixed |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for scheme in SCHEMES:
        for budget, word in (("s", "seconds"), ("j", "joules")):
            best = best_fixed(rows, scheme, budget)

            def of(steps: str, name: str = "accuracy", own: tuple[str, str] = (scheme, budget)) -> FloatArray:
                return column(rows, *own, steps, name)

            first, second = ADAPTIVE
            points = [interval((100 * (of(one) - of(best))).tolist()) for one in ADAPTIVE]
            ratio = ratio_interval((of(first, "loss") / of(best, "loss")).tolist())
            cells = (
                scheme,
                word,
                best,
                f"{interval((100 * of(best)).tolist())} %",
                f"{interval((100 * of('1')).tolist())} %",
                f"{of(first, 'mean_steps').mean():.1f}",
                f"{interval((100 * of(first)).tolist())} %",
                f"{points[0]} points",
                times(ratio),
                f"{of(second, 'mean_steps').mean():.1f}",
                f"{points[1]} points",
            )
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def overspent(rows: Sequence[Row]) -> str:
    """Return how often adaptive runs spent more than their budget, and by how much at most."""
    own = [row for row in rows if row["steps"] in ADAPTIVE]
    shares = [float(row["spent"]) / float(row["total"]) - 1.0 for row in own]
    over = [share for share in shares if share > 0]
    return f"{len(over)} of {len(own)} runs, by at most {100 * max(over, default=0.0):.1f} %"


def draw(rows: Sequence[Row], path: Path) -> None:
    """Draw accuracy against fixed steps, and the adaptive runs at their mean number of steps."""
    figure, axes = new_figure(len(SCHEMES), width=3.4, height=3.3)
    taus = [int(steps) for steps in FIXED]
    for axis, scheme in zip(axes, SCHEMES, strict=True):
        for (budget, word), colour in zip((("s", "seconds"), ("j", "joules")), COLOURS, strict=False):
            found = [
                interval((100 * column(rows, scheme, budget, one, "accuracy")).tolist()) for one in FIXED
            ]
            means = np.array([one.mean for one in found])
            half = np.array([one.half_width for one in found])
            axis.plot(taus, means, color=colour, marker="o", markersize=3, label=f"fixed τ, {word}")
            axis.fill_between(taus, means - half, means + half, color=colour, alpha=0.12, linewidth=0)
            for steps, marker in zip(ADAPTIVE, ("*", "v"), strict=True):
                where = column(rows, scheme, budget, steps, "mean_steps").mean()
                own = interval((100 * column(rows, scheme, budget, steps, "accuracy")).tolist())
                label = f"adaptive, φ = {ADAPTIVE[steps]:g}" if budget == "s" else None
                axis.errorbar(
                    [where], [own.mean], [own.half_width], color=colour, marker=marker, markersize=8,
                    markeredgecolor="black", capsize=2, linestyle="none", label=label,
                )  # fmt: skip
        axis.set(xscale="log", xlabel="local steps τ of a round", title=scheme)
        axis.set_xticks(taus, labels=FIXED)
        axis.minorticks_off()
    axes[0].set_ylabel("held-out accuracy at the budget [%]")
    axes[0].legend(loc="lower right", fontsize=7)
    save_figure(figure, path)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, nargs="+", default=list(range(10)))
    parser.add_argument("--report", action="store_true", help="run nothing, read what is there")
    arguments = parser.parse_args()
    if not arguments.report:
        run(arguments.seeds)
    rows = finished(read())
    print(f'seeds = "{len({row["seed"] for row in rows})}"')
    print(f'overspent = "{overspent(rows)}"')
    print(f'table = """\n{table(rows)}\n"""')
    draw(rows, ROOT / "docs" / "figures" / "adaptive_steps.png")


if __name__ == "__main__":
    main()
