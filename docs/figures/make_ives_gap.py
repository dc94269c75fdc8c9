"""Draws docs/figures/ives_gap.png: where IVES stops, where the optimum is, and why. Prints the ratios.

    python docs/figures/make_ives_gap.py

How far IVES stays behind rests on the scale of u, which Table III does not say: u ~ U(0, s) for several s,
and u as NUFM's devices reported it in training on Fashion-MNIST (benchmarks/data).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from fedwave import load_cell, problem_of_cell
from fedwave.allocation import AllocationProblem, allocate
from fedwave.allocation.computing.cpu_frequency import compute_cost, solve_cpu_frequencies
from fedwave.allocation.uploads.assignment import best_matching
from fedwave.allocation.uploads.pairs import all_pairs
from fedwave.allocation.uploads.power import energy_factor, snr_of_delay
from fedwave.intervals import median_interval
from fedwave.plots.style import COLOURS, new_figure, save_figure
from fedwave.units import FloatArray

SHOWN_SEED = 1
NUM_SEEDS = 100
RANGES = {"U(0, 1) W, Table III": 0.0, "U(0.1, 1) W": 0.1, "U(0.5, 1) W": 0.5}
SCALES = (10, 30, 100, 300, 1_000, 3_000, 10_000)  # s of u ~ U(0, s)
TRAINED = Path(__file__).parents[2] / "benchmarks" / "data" / "fashion_mnist_contributions.csv"


def table_iii(
    seed: int, weakest_power_w: float = 0.0, scale: float = 10.0, worth: FloatArray | None = None
) -> AllocationProblem:
    """Return a draw of Table III with u ~ U(0, scale), n = 100, or a given u; p_max ~ U(weakest, 1)."""
    powers = {"fleet": {"max_power_w": {"low": weakest_power_w, "high": 1.0}}}
    if worth is None:
        worth = np.random.default_rng(seed).uniform(0, scale, 100)
    cell = load_cell("paper", num_devices=len(worth), seed=seed, overrides=powers)
    return problem_of_cell(cell, worth, num_samples=0)  # no samples, no work: the upload alone, problem (SP2)


def value_at_delay(problem: AllocationProblem, delay_s: float) -> float:
    """Return the best matching's value at this delay, less the cost of the delay."""
    snr = snr_of_delay(delay_s, nat_delay_s=problem.nat_delay_s)
    matching = best_matching(all_pairs(problem), energy_factor=energy_factor(snr), smallest_cap=snr)
    return matching.value(energy_factor(snr)) - problem.delay_weight * delay_s


def draw_scales(axis: Any) -> None:
    """Draw how many times the optimum's delay IVES takes by the scale of u, and in training."""
    trained = np.loadtxt(TRAINED, delimiter=",", skiprows=1)[:, 2:]
    places = {f"u ~ U(0, {scale:,})": (scale / 2, scale) for scale in SCALES}
    rng = np.random.default_rng(0)
    for name, (mean, scale) in {**places, "u of training": (float(trained.mean()), None)}.items():
        problems = [
            table_iii(seed, scale=scale or 0.0, worth=None if scale else trained[seed])
            for seed in range(NUM_SEEDS)
        ]
        best = [allocate(one) for one in problems]
        ives = [allocate(one, "ives", keep_negative=True) for one in problems]
        many = [allocate(one, "ives-multistart") for one in problems]
        ratios = [a.upload_delay_s / b.upload_delay_s for a, b in zip(ives, best, strict=True)]
        lost, mended = (
            [1.0 - a.objective / b.objective for a, b in zip(found, best, strict=True)]
            for found in (ives, many)
        )
        ratio = median_interval(ratios)
        print(
            f"{name}, n = {problems[0].num_devices}: delay of IVES {ratio} times the optimum's (largest "
            f"{max(ratios):,.0f}); objective lost {np.median(lost):.2%}, from ten starts "
            f"{np.median(mended):.2%} (worst {max(mended):.2%})"
        )
        colour = COLOURS[0] if scale is None else COLOURS[1]
        spread = mean * np.exp(rng.uniform(-0.12, 0.12, NUM_SEEDS))
        axis.scatter(spread, ratios, s=6, color=colour, alpha=0.3, linewidths=0)
        error = ([ratio.median - ratio.low], [ratio.high - ratio.median])
        label = {10: "u ~ U(0, s): median, 95 %", None: "u as met in training"}.get(scale)
        marker = "o" if scale else "D"
        axis.errorbar(
            mean, ratio.median, error, color=colour, marker=marker, capsize=3, zorder=3, label=label
        )
        if scale in (10, None):
            side, text = ("center", f"{ratio.median:.1f} ×")
            axis.annotate(text, (mean, 0.5), ha=side, fontsize=9, weight="bold", color=colour)
    axis.axhline(1.0, color="black", linewidth=0.8, linestyle="--")
    axis.set(xscale="log", yscale="log", ylim=(0.35, 20_000), title="The gap rests on the scale of u",
             xlabel="mean of u: what an upload is worth [s, J]",
             ylabel="upload delay of IVES by the optimum's")  # fmt: skip
    axis.legend(loc="upper right", fontsize=8, frameon=False)


def main() -> None:
    """Write the picture beside this script."""
    figure, (left, right, by_scale) = new_figure(3, width=3.9, height=3.5)
    problem = table_iii(SHOWN_SEED)
    best, stuck = allocate(problem), allocate(problem, "ives", keep_negative=True)
    assert compute_cost(problem, solve_cpu_frequencies(problem).cpu_frequency_hz) == 0.0
    delay = np.geomspace(1.5, 400, 500)
    left.plot(delay, [value_at_delay(problem, one) for one in delay], color="#777777", linewidth=1.2)
    for found, colour, name, offset in (
        (best, COLOURS[2], "certified optimum", (-18, 9)),
        (stuck, COLOURS[1], "IVES stops here", (6, 6)),
    ):
        left.scatter(found.upload_delay_s, found.objective, color=colour, s=40, zorder=3)
        text = f"{name}\n{found.objective:.0f} at {found.upload_delay_s:.1f} s"
        side = "left"
        left.annotate(text, (found.upload_delay_s, found.objective), xytext=offset, color=colour,
                      textcoords="offset points", ha=side, fontsize=8)  # fmt: skip
    left.set(xscale="log", xlabel="upload delay δ [s]", ylabel="value of (SP2): best matching − η₂ δ",
             ylim=(-100, 175), title=f"One draw of Table III (seed {SHOWN_SEED})")  # fmt: skip
    for (name, weakest), colour in zip(RANGES.items(), (COLOURS[1], COLOURS[4], COLOURS[0]), strict=True):
        problems = [table_iii(seed, weakest) for seed in range(NUM_SEEDS)]
        optimal = np.array([allocate(one).upload_delay_s for one in problems])
        stopped = [allocate(one, "ives", keep_negative=True) for one in problems]
        ives = np.array([one.upload_delay_s for one in stopped])
        print(
            f"p_max ~ {name}: upload delay of IVES by that of the optimum {np.median(ives / optimal):.1f} "
            f"(median), {np.max(ives / optimal):.0f} (largest); worth less than nobody uploading in "
            f"{sum(one.objective < 0 for one in stopped)} of {NUM_SEEDS} draws; at most two rounds in "
            f"{sum(one.iterations <= 2 for one in stopped)}"
        )
        right.scatter(optimal, ives, s=11, color=colour, alpha=0.75, linewidths=0, label=f"p_max ~ {name}")
    limits = (2.5, 20_000)
    right.plot(limits, limits, color="black", linewidth=0.8, linestyle="--")
    right.set(xscale="log", yscale="log", xlim=(2.5, 20), ylim=limits,
              xlabel="upload delay of the optimum [s]", ylabel="upload delay of IVES [s]",
              title=f"{NUM_SEEDS} draws each; dashed: equal delays")  # fmt: skip
    right.set_xticks([3, 5, 10, 20], ["3", "5", "10", "20"])
    right.minorticks_off()
    right.legend(loc="upper right", fontsize=8, markerscale=2, frameon=False)
    draw_scales(by_scale)
    save_figure(figure, Path(__file__).with_name("ives_gap.png"))


if __name__ == "__main__":
    main()
