"""What the calibration of the 3GPP cells changes: the bare presets beside the calibrated ones.

    python benchmarks/calibration_effect.py [--draws 100]

One round at a time of 50 devices, the paper's CNN, u ~ U(0, 2) and the weights that `fedwave cell` advises.
Links are those of each device at full power on its typical block. Every cell is planned with its own radio
and with the powers of a measured modem. Writes benchmarks/data/calibration_effect.csv, a line for each draw,
and prints the table of docs/results.toml: shares over all devices, otherwise medians over draws.
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path
from typing import Any

import numpy as np

from fedwave import load_cell, problem_of_cell
from fedwave.allocation import allocate
from fedwave.rng import Stream, generator
from fedwave.units import linear_to_db
from fedwave.wireless.describe.link_budget import device_links
from when_planning_pays import MODEL_BITS, NUM_DEVICES

PRESETS = tuple(f"{name}{end}" for name in ("umi-3.5ghz", "uma-2ghz", "rma-700mhz") for end in ("-bare", ""))
MEASURED: dict[str, Any] = {"radio": {"power_set": "measured-x55"}}
DATA = Path(__file__).parent / "data" / "calibration_effect.csv"
Line = dict[str, float]


def line_of(preset: str, seed: int) -> Line:
    """Return the links of one draw, and the round with both radios."""
    cell = load_cell(preset, num_devices=NUM_DEVICES, seed=seed)
    links = device_links(cell, cell.draw(0), model_bits=MODEL_BITS)
    line = {
        "median_sinr_db": linear_to_db(float(np.median(links.sinr))),
        "link_share": float(np.mean(links.rate_bps > 0.0)),
        "cap_share": float(np.mean(links.sinr >= cell.rate_model.max_snr)),
    }
    measured = load_cell(preset, num_devices=NUM_DEVICES, seed=seed, overrides=MEASURED)
    for name, one in (("own", cell), ("x55", measured)):
        worth = np.random.default_rng(seed).uniform(0.0, 2.0, NUM_DEVICES)
        problem = problem_of_cell(one, worth, num_samples=14, model_bits=MODEL_BITS)
        best, simple, blind = (
            allocate(problem, method, rng=generator(seed, Stream.ALLOCATION))
            for method in ("optimal", "value-rate", "greedy")
        )
        line |= {
            f"{name}_delay_s": best.delay_s,
            f"{name}_energy_j": best.energy_j,
            f"{name}_greedy_time_ratio": blind.delay_s / best.delay_s,
            f"{name}_greedy_energy_ratio": blind.energy_j / best.energy_j,
            f"{name}_value_rate_loss": 1.0 - simple.objective / best.objective,
        }
    return line


def row_of(preset: str, lines: list[Line]) -> str:
    """Return a preset's row of the table."""
    share = {key: float(np.mean([line[key] for line in lines])) for key in ("link_share", "cap_share")}
    value = {key: float(np.median([line[key] for line in lines])) for key in lines[0]}
    cells = [f"{value['median_sinr_db']:.1f} dB", f"{share['link_share']:.1%}", f"{share['cap_share']:.0%}"]
    for name in ("own", "x55"):
        own = {key.removeprefix(f"{name}_"): value[key] for key in value if key.startswith(name)}
        cells += [
            "{delay_s:.1f} s, {energy_j:.0f} J".format_map(own),
            "× {greedy_time_ratio:.1f}, × {greedy_energy_ratio:.1f}".format_map(own),
            f"{own['value_rate_loss']:.1%}",
        ]
    return f"| `{preset}` | {' | '.join(cells).replace('%', ' %')} |"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--draws", type=int, default=100)
    num_draws = parser.parse_args().draws
    found = {preset: [line_of(preset, seed) for seed in range(num_draws)] for preset in PRESETS}
    radios = ("optimum's round", "Greedy's time, energy", "`value-rate` loses")
    titles = ["", "median SINR", "with a link", "at the cap", *radios, *(f"X55: {one}" for one in radios)]
    print(f"| {' | '.join(titles)} |\n|{'---|' * len(titles)}")
    with DATA.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["preset", "seed", *found[PRESETS[0]][0]])
        for preset, lines in found.items():
            print(row_of(preset, lines))
            for seed, line in enumerate(lines):
                writer.writerow([preset, seed, *(f"{value:.6g}" for value in line.values())])


if __name__ == "__main__":
    main()
