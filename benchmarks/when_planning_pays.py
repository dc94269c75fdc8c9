"""When planning pays: what each method loses against the certified optimum, by coverage, load, u and limits.

    python benchmarks/when_planning_pays.py [--preset umi-3.5ghz] [--draws 100] [--out docs/figures]

One round of a street cell at a time, the same draws for all methods: 50 devices, 20 blocks, the CNN's 3.62
Mbit, and contributions as NUFM's devices report them on Fashion-MNIST (benchmarks/data), scaled to a mean of
1. One of four things is changed: the loss of every link (by the base station's noise figure, which moves
every SNR alike), the devices per block, the contributions, which become log-normal with a mean of 1, or the
time granted to the uploads, as a multiple of what the optimum would take. All of it with the radio's powers
of TR 38.840 and with those of a measured modem.
Writes when_planning_pays.csv (medians, 95 % intervals from order statistics) and .png (TR 38.840). Prints the
table of docs/results.toml and the CPU time of each method, and asserts that the threshold rule takes no
longer than the proof.
"""

from __future__ import annotations

import argparse
import csv
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np

from bench_allocation import trained_contributions
from fedwave import load_cell, problem_of_cell
from fedwave.allocation import AllocationProblem, allocate
from fedwave.intervals import median_interval
from fedwave.plots.style import new_figure, save_figure
from fedwave.rng import Stream, generator
from fedwave.units import FloatArray
from fedwave.wireless.power_sets import POWER_SETS

NUM_DEVICES, NUM_BLOCKS = 50, 20
MODEL_BITS = 3_621_184  # of the paper's CNN on Fashion-MNIST, 32 bits a parameter
WEIGHTS = {"energy_weight": 0.07, "delay_weight": 1.4}  # of the presets umi/*
AXES: dict[str, tuple[float, ...]] = {
    "link_loss_db": (-10, -5, 0, 5, 10, 15, 20, 25),
    "devices_per_block": (0.5, 1, 1.5, 2.5, 5, 10, 20),
    "sigma_of_log_u": (0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0),
    "deadline_share": (0.6, 0.7, 0.8, 0.9, 1.0, 1.5, 2.0),
}
# In the order of the legend; the last two stand in the table alone.
METHODS = {
    "threshold": ("Threshold", "#0072B2", "o"),
    "value-rate": ("Value-rate", "#009E73", "s"),
    "ives-multistart": ("IVES, ten starts", "#CC79A7", "v"),
    "ives": ("URAL (IVES)", "#D55E00", "^"),
    "proportional-fair": ("Proportional fair", "#777777", "D"),
    "greedy": ("NUFM-Greedy", "#000000", "x"),
    "fedl-power": ("", "", ""),
    "random": ("", "", ""),
}
LOSS = ("loss", "loss_low", "loss_high", "loss_95")
TABLE = {  # rows of docs/results.toml
    "the street cell as it is": ("link_loss_db", 0),
    "10 dB less loss on every link": ("link_loss_db", -10),
    "15 dB more": ("link_loss_db", 15),
    "25 dB more": ("link_loss_db", 25),
    "as many devices as blocks": ("devices_per_block", 1),
    "20 devices a block": ("devices_per_block", 20),
    "log-normal u, σ = 1": ("sigma_of_log_u", 1),
    "log-normal u, σ = 2.5": ("sigma_of_log_u", 2.5),
    "a deadline of the optimum's own delay": ("deadline_share", 1),
}
COLUMNS = ("power_set", "axis", "value", "method", *LOSS, "time_ratio", "energy_ratio", "draws")
FEWEST = 50  # draws in which somebody uploads: points of fewer are not drawn
LEAST = 1e-4  # of the optimum: losses below are drawn there


def draw(preset: str, power_set: str, axis: str, value: float, seed: int) -> AllocationProblem:
    """Return one round: what is not changed is as in the street cell."""
    num_devices = round(value * NUM_BLOCKS) if axis == "devices_per_block" else NUM_DEVICES
    rng = np.random.default_rng(seed)
    if axis == "sigma_of_log_u":
        worth = np.exp(value * rng.standard_normal(num_devices) - value**2 / 2)
    else:
        trained = trained_contributions()[seed % 100]
        worth = rng.permutation(trained) if num_devices == NUM_DEVICES else rng.choice(trained, num_devices)
    noise = {} if axis != "link_loss_db" else {"noise_figure_db": noise_figure_db(preset) + value}
    overrides = {"num_blocks": NUM_BLOCKS, "radio": {"power_set": power_set}, **noise}
    cell = load_cell(preset, num_devices=num_devices, seed=seed, overrides=overrides)
    problem = problem_of_cell(cell, worth / worth.mean(), num_samples=14, model_bits=MODEL_BITS, **WEIGHTS)
    if axis != "deadline_share":
        return problem
    return replace(problem, max_delay_s=value * allocate(problem).upload_delay_s)


def noise_figure_db(preset: str) -> float:
    """Return that of the preset's base station."""
    return float(load_cell(preset, num_devices=1, seed=0).config.noise_figure_db)


def compare(preset: str, num_draws: int) -> Iterator[dict[str, object]]:
    """Yield a row for every power set, axis, value and method, and print the time of each method."""
    seconds: dict[str, list[float]] = {}
    for power_set, (axis, values) in product(POWER_SETS, AXES.items()):
        for value in values:
            found: dict[str, list[tuple[float, float, float]]] = {name: [] for name in METHODS}
            for seed in range(num_draws):
                problem = draw(preset, power_set, axis, value, seed)
                best = timed(problem, "optimal", seed, seconds)
                for name in METHODS:
                    other = timed(problem, name, seed, seconds)
                    found[name].append(against(best, other))
            for name, rows in found.items():
                loss, delay, energy = (median_interval(column) for column in zip(*rows, strict=True))
                tail = float(np.nanquantile([row[0] for row in rows], 0.95))
                losses = (loss.median, loss.low, loss.high, tail)
                row = (power_set, axis, value, name, *losses, delay.median, energy.median, loss.count)
                yield dict(zip(COLUMNS, row, strict=True))
    least = {name: 1e3 * float(np.median(values)) for name, values in seconds.items()}
    print("CPU milliseconds, median: " + ", ".join(f"{name} {value:.1f}" for name, value in least.items()))
    assert least["threshold"] <= least["optimal"], "the threshold rule takes longer than the proof"


def print_table(rows: list[dict[str, object]]) -> None:
    """Print the share of the objective that is lost, with each of the power sets."""
    print("| | threshold | in 5 % of draws | value-rate | URAL (IVES) | proportional fair | NUFM-Greedy |")
    print("|---|---|---|---|---|---|---|")
    columns = [("threshold", "loss"), ("threshold", "loss_95")]
    columns += [(name, "loss") for name in ("value-rate", "ives", "proportional-fair", "greedy")]
    for title, (axis, value) in TABLE.items():
        own = {
            (row["power_set"], row["method"]): row
            for row in rows
            if row["axis"] == axis and row["value"] == value
        }
        cells = (
            " / ".join(percent(float(str(own[power_set, name][key]))) for power_set in POWER_SETS)
            for name, key in columns
        )
        print(f"| {title} | {' | '.join(cells)} |")


def percent(share: float) -> str:
    """Return two figures of a share, and 0 for less than 0.005 %."""
    value = 100 * max(share, 0.0)
    return "0 %" if value < 0.005 else f"{value:.0f} %" if value >= 10 else f"{value:.2g} %"


def timed(problem: AllocationProblem, method: str, seed: int, seconds: dict[str, list[float]]) -> FloatArray:
    """Return objective, delay and energy of a method's answer."""
    rng = generator(seed, Stream.ALLOCATION)
    start = time.process_time()
    found = allocate(problem, method, rng=rng)
    seconds.setdefault(method, []).append(time.process_time() - start)
    return np.array([found.objective, found.delay_s, found.energy_j])


def against(best: FloatArray, other: FloatArray) -> tuple[float, float, float]:
    """Return the share of the optimum's objective that is lost, and the times and energies as multiples.

    NaN, which no median counts, where the optimum is that nobody uploads.
    """
    if best[0] <= 0.0:
        return float("nan"), float("nan"), float("nan")
    return float(1.0 - other[0] / best[0]), float(other[1] / best[1]), float(other[2] / best[2])


def plot(rows: list[dict[str, object]], path: Path) -> None:
    """Draw the loss of each method over each axis."""
    figure, axes = new_figure(2, width=4.2, height=3.1, num_rows=2)
    labels = (
        "weak coverage: loss added to every link [dB]",
        "load: devices per block",
        "heavy tails: σ of log u",
        "deadline of the uploads, by the optimum's own delay",
    )
    for axis, name, label in zip(axes, AXES, labels, strict=True):
        for method, (title, colour, marker) in METHODS.items():
            if not title:
                continue
            own = [row for row in rows if row["axis"] == name and row["method"] == method]
            own = [row for row in own if int(str(row["draws"])) >= FEWEST]
            x = np.array([row["value"] for row in own], dtype=float)
            loss, low, high = (
                np.array([row[key] for row in own], dtype=float) for key in ("loss", "loss_low", "loss_high")
            )
            axis.fill_between(
                x, np.maximum(low, LEAST), np.maximum(high, LEAST), color=colour, alpha=0.15, lw=0
            )
            if method == "threshold":
                tail = np.array([row["loss_95"] for row in own], dtype=float)
                axis.plot(
                    x, np.maximum(tail, LEAST), color=colour, lw=1, ls=":", label="Threshold, 5 % of draws"
                )
            axis.plot(
                x, np.maximum(loss, LEAST), color=colour, marker=marker, markersize=4, lw=1.3, label=title
            )
        axis.set(xlabel=label, yscale="log", ylim=(LEAST * 0.8, 20))
        axis.set_yticks(
            [1e-4, 1e-3, 1e-2, 0.1, 1, 10], ["≤ 0.01 %", "0.1 %", "1 %", "10 %", "100 %", "1,000 %"]
        )
        axis.minorticks_off()
    axes[1].set_xscale("log")
    ticks = [0.5, 1, 2.5, 5, 10, 20]
    axes[1].set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    for axis in axes[::2]:
        axis.set_ylabel("objective lost")
    heading = "Objective lost against the proven optimum: medians of 100 draws, 95 % intervals"
    figure.suptitle(heading, fontsize=10)
    axes[0].axvline(0, color="black", lw=0.6, ls=":")
    axes[1].axvline(NUM_DEVICES / NUM_BLOCKS, color="black", lw=0.6, ls=":")
    lines, names = axes[0].get_legend_handles_labels()
    lines, names = [lines[1], lines[0], *lines[2:]], [names[1], names[0], *names[2:]]
    figure.legend(lines, names, loc="outside lower center", ncols=4, frameon=False)
    save_figure(figure, path)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--preset", default="umi-3.5ghz")
    parser.add_argument("--draws", type=int, default=100)
    parser.add_argument("--out", type=Path, default=Path("docs/figures"))
    arguments = parser.parse_args()
    rows = list(compare(arguments.preset, arguments.draws))
    with (arguments.out / "when_planning_pays.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow({k: f"{v:.4g}" if isinstance(v, float) else v for k, v in row.items()})
    print_table(rows)
    first = next(iter(POWER_SETS))
    plot([row for row in rows if row["power_set"] == first], arguments.out / "when_planning_pays.png")


if __name__ == "__main__":
    main()
