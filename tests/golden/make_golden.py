"""Makes golden.json: what short runs of the presets gave. Run it only when a number is meant to move.

    python -m tests.golden.make_golden

and say in CHANGELOG which numbers moved and why.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file

from fedwave.experiments import load_experiment
from fedwave.runs.folder import RunFolder
from fedwave.runs.run import run_experiment

GOLDEN = Path(__file__).with_name("golden.json")

# Two rounds of a smaller network: every line of the code is passed, and the tests stay quick.
DIGITS = ("num_rounds=2", "model.channels=[8, 16]")
# The paper's presets are on Fashion-MNIST, which is not at hand everywhere.
SYNTHETIC = (
    *DIGITS,
    "data.dataset=synthetic",
    "data.dataset.num_samples=1500",
    "data.dataset.shape=[1, 8, 8]",
    "partition.num_devices=40",
)
RUNS: dict[str, tuple[str, ...]] = {
    "digits/fedavg": DIGITS,
    "digits/per-fedavg": DIGITS,
    "digits/nufm": (*DIGITS, "algorithm.num_local_steps=2", "algorithm.query_batch_size=4"),
    "digits/ural": (*DIGITS, "num_rounds=3"),
    "digits/ural-ives": DIGITS,
    "digits/threshold": DIGITS,
    "digits/value-rate": DIGITS,
    "digits/proportional-fair": (*DIGITS, "num_rounds=3"),
    "digits/nufm-greedy": DIGITS,
    "digits/nufm-random": DIGITS,
    "digits/ru-greedy": DIGITS,
    "digits/ru-random": DIGITS,
    "paper/nufm": (*SYNTHETIC, "selection.num_selected=8"),
    "umi/ural": (*SYNTHETIC, "cell.num_blocks=6"),
}
# How long it took, and how far a proof had come: neither is a result.
LEFT_OUT = ("wall_time_s", "objective_gap")
OF_DEVICES = ("contribution", "is_selected", "block", "transmit_power_w", "cpu_frequency_hz")


def results_of(preset: str, folder: Path) -> dict[str, Any]:
    """Return what a short run of a preset gives: its rounds, its devices in the last one, its model."""
    run = RunFolder(run_experiment(load_experiment(preset, RUNS[preset]), folder).path)
    rounds, devices = run.table(), run.table("devices.csv")
    is_last = devices["round"] == rounds["round"][-1]
    model = load_file(run.path / "model.safetensors")
    return {
        "rounds": {name: _plain(column) for name, column in rounds.items() if name not in LEFT_OUT},
        "devices": {name: _plain(devices[name][is_last]) for name in OF_DEVICES if name in devices},
        "model": {name: float(np.linalg.norm(value.astype(np.float64))) for name, value in model.items()},
    }


def _plain(column: Any) -> list[Any]:
    """Return a column as JSON has it: numbers, text, lists; None where nothing was measured."""
    values = column.tolist() if isinstance(column, np.ndarray) else column
    return [
        value.tolist() if isinstance(value, np.ndarray) else None if value != value else value
        for value in values
    ]


def main() -> None:
    """Write the file."""
    with tempfile.TemporaryDirectory() as folder:
        found = {preset: results_of(preset, Path(folder) / preset) for preset in RUNS}
    GOLDEN.write_text(json.dumps(found, indent=1) + "\n")
    print(f"{GOLDEN}: {len(found)} runs")


if __name__ == "__main__":
    main()
