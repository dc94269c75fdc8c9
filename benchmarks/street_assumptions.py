"""How far the street cell's ratios rest on its assumptions: one row for each that is changed, 100 rounds.

    python benchmarks/street_assumptions.py [--draws 100]

Allocation alone, without learning: a round of 50 devices on 20 blocks, the CNN's 3.62 Mbit, contributions as
NUFM's devices report them on Fashion-MNIST (benchmarks/data), the same draws for all methods. Seconds and
joules are those of computing and uploading; the broadcast, which no allocation moves, is left out. Writes
benchmarks/data/street_assumptions.csv and prints the table of docs/results.toml: the optimum's medians, and
what the others take as multiples of it (medians over the draws, 95 % intervals from order statistics).
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path
from typing import Any

import numpy as np

from bench_allocation import trained_contributions
from fedwave import load_cell, problem_of_cell
from fedwave.allocation import AllocationProblem, allocate
from fedwave.intervals import median_interval
from fedwave.rng import Stream, generator
from when_planning_pays import MODEL_BITS, NUM_BLOCKS, NUM_DEVICES, WEIGHTS

PRESET = "umi-3.5ghz"
ROWS: dict[str, tuple[str, dict[str, Any]]] = {
    "as the preset is": (PRESET, {}),
    "one antenna of 0 dBi": (
        PRESET,
        {"channel": {"base_station_antenna_gain_dbi": 0.0, "num_receive_antennas": 1}},
    ),
    "everybody outdoors": (PRESET, {"channel": {"indoor_share": 0.0}}),
    "everybody indoors": (PRESET, {"channel": {"indoor_share": 1.0}}),
    "a downlink's link curve": (
        PRESET,
        {"rate": {"efficiency": 0.65, "max_spectral_efficiency": 6.3, "min_sinr_db": -6.0}},
    ),
    "radio as measured (X55)": (PRESET, {"radio": {"power_set": "measured-x55"}}),
    "CPUs as FEDL assumes": (PRESET, {"fleet": {"cpu": "fedl"}}),
    "the bare cell of before": (f"{PRESET}-bare", {}),
}
METHODS = ("optimal", "threshold", "value-rate", "ives", "greedy", "random")
DATA = Path(__file__).parent / "data" / "street_assumptions.csv"


def problem_of(row: str, seed: int) -> AllocationProblem:
    """Return one round under a row's assumptions; cell and contributions are drawn from the seed."""
    preset, overrides = ROWS[row]
    worth = np.random.default_rng(seed).permutation(trained_contributions()[seed % 100])
    cell = load_cell(
        preset, num_devices=NUM_DEVICES, seed=seed, overrides={"num_blocks": NUM_BLOCKS, **overrides}
    )
    return problem_of_cell(cell, worth / worth.mean(), num_samples=14, model_bits=MODEL_BITS, **WEIGHTS)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--draws", type=int, default=100)
    num_draws = parser.parse_args().draws
    lines: list[dict[str, object]] = []
    print("| assumption | optimum | threshold | value-rate | URAL (IVES) | Greedy | Random |")
    print("|---|---|---|---|---|---|---|")
    for row in ROWS:
        found = []
        for seed in range(num_draws):
            problem = problem_of(row, seed)
            answers = [allocate(problem, name, rng=generator(seed, Stream.ALLOCATION)) for name in METHODS]
            found.append([(one.objective, one.delay_s, one.energy_j, one.num_selected) for one in answers])
        values = np.array(found)  # (draws, methods, 4)
        cells = []
        for index, name in enumerate(METHODS):
            own, best = values[:, index], values[:, 0]
            loss = median_interval(list(1.0 - own[:, 0] / best[:, 0]))
            time, energy = (median_interval(list(own[:, k] / best[:, k])) for k in (1, 2))
            seconds, joules, count = (float(np.median(own[:, k])) for k in (1, 2, 3))
            numbers = {"seconds": seconds, "joules": joules, "uploads": count, "loss": loss.median}
            times = {f"time_{end}": getattr(time, end) for end in ("median", "low", "high")}
            energies = {f"energy_{end}": getattr(energy, end) for end in ("median", "low", "high")}
            lines.append({"assumption": row, "method": name, **numbers, **times, **energies})
            cells.append(
                f"{seconds:.2f} s, {joules:.1f} J, {count:.0f} uploads"
                if index == 0
                else f"{time.median:.2f} ×, {energy.median:.2f} ×"
            )
        print(f"| {row} | {' | '.join(cells)} |", flush=True)
    with DATA.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(lines[0]), lineterminator="\n")
        writer.writeheader()
        for line in lines:
            writer.writerow({key: f"{v:.4g}" if isinstance(v, float) else v for key, v in line.items()})


if __name__ == "__main__":
    main()
