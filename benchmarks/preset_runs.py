"""Runs of presets over seeds, kept in folders: what is there is read, what was stopped is resumed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from fedwave.experiments import load_experiment
from fedwave.runs.compare import FinishedRun, read_run
from fedwave.runs.progress import ProgressBar
from fedwave.runs.run import resume_run, run_experiment


def runs_of(
    presets: Sequence[str], seeds: Sequence[int], out: Path, *, data_dir: Path | None, console: Console
) -> list[FinishedRun]:
    """Return a finished run of every preset and seed."""
    runs = []
    for seed in seeds:
        for preset in presets:
            folder = out / f"{preset.split('/')[1]}-seed{seed}"
            with ProgressBar(console) as bar:
                if (folder / "config.toml").exists():
                    resume_run(folder, data_dir=data_dir, observers=[bar])
                else:
                    experiment = load_experiment(preset, [f"seed={seed}"])
                    run_experiment(experiment, folder, data_dir=data_dir, observers=[bar])
            runs.append(read_run(folder))
    return runs
