"""Runs of presets over seeds, kept in folders: what is there is read, what was stopped is resumed."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from fedwave.experiments import load_experiment
from fedwave.runs.compare import FinishedRun, read_run
from fedwave.runs.observers import ProgressBar
from fedwave.runs.run import resume_run, run_experiment
from fedwave.wireless.power_sets import POWER_SETS


def runs_of(
    presets: Sequence[str],
    seeds: Sequence[int],
    out: Path,
    settings: Sequence[str] = (),
    *,
    data_dir: Path | None,
    console: Console,
) -> list[FinishedRun]:
    """Return a finished run of every preset and seed."""
    runs = []
    for seed in seeds:
        for preset in presets:
            folder = folder_of(out, preset, seed)
            with ProgressBar(console) as bar:
                if (folder / "config.toml").exists():
                    resume_run(folder, data_dir=data_dir, observers=[bar])
                else:
                    experiment = load_experiment(preset, [*settings, f"seed={seed}"])
                    run_experiment(experiment, folder, data_dir=data_dir, observers=[bar])
            runs.append(read_run(folder))
    return runs


def folder_of(out: Path, preset: str, seed: int) -> Path:
    """Return the folder of one run."""
    return out / f"{preset.split('/')[1]}-seed{seed}"


def with_power_set(power_set: str | None, out: Path, file_name: str) -> tuple[list[str], Path, str]:
    """Return settings, folder and file name of runs with a radio's powers; None: those of the preset."""
    if power_set is None:
        return [], out, file_name
    settings = [f"cell.radio.power_set={power_set}"]
    return settings, out.with_name(f"{out.name}-{power_set}"), f"{file_name}_{power_set}"


def parse_arguments(
    description: str | None, *, out: Path, seeds: Sequence[int] = range(5)
) -> argparse.Namespace:
    """Return the folder, the data folder, the seeds and the radio's powers that the command line asks for."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=out)
    parser.add_argument("--data-dir", type=Path, default=None)
    parser.add_argument("--seeds", type=int, nargs="+", default=list(seeds))
    parser.add_argument("--report", action="store_true", help="run nothing, read what is finished")
    parser.add_argument("--power-set", choices=POWER_SETS, help="of the radio; by default the preset's own")
    return parser.parse_args()
