"""Runs of presets over seeds, kept in folders: what is there is read, what was stopped is resumed."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from fedwave.experiments import load_experiment
from fedwave.runs.compare import FinishedRun, read_run
from fedwave.runs.observers import ProgressBar
from fedwave.runs.run import resume_run, run_experiment
from fedwave.wireless.power_sets import POWER_SETS


@dataclass(frozen=True)
class Arm:
    """A preset with settings of its own; its runs' folders begin with ``folder``."""

    folder: str
    preset: str
    settings: tuple[str, ...] = ()

    def path(self, out: Path, seed: int) -> Path:
        """Return the folder of one run."""
        return out / f"{self.folder}-seed{seed}"

    def is_finished(self, out: Path, seed: int) -> bool:
        """Return whether the run of a seed has come to its end."""
        return (self.path(out, seed) / "summary.json").exists()


def run_arms(
    arms: Sequence[Arm],
    seeds: Sequence[int],
    out: Path,
    settings: Sequence[str] = (),
    *,
    data_dir: Path | None,
    console: Console,
) -> None:
    """Run every arm with every seed, seed by seed."""
    for seed in seeds:
        for arm in arms:
            folder = arm.path(out, seed)
            with ProgressBar(console) as bar:
                if (folder / "config.toml").exists():
                    resume_run(folder, data_dir=data_dir, observers=[bar])
                else:
                    experiment = load_experiment(arm.preset, [*settings, *arm.settings, f"seed={seed}"])
                    run_experiment(experiment, folder, data_dir=data_dir, observers=[bar])


def finished_runs(arms: Sequence[Arm], seeds: Sequence[int], out: Path) -> list[FinishedRun]:
    """Return the runs of the seeds that every arm has finished."""
    whole = [seed for seed in seeds if all(arm.is_finished(out, seed) for arm in arms)]
    return [read_run(arm.path(out, seed)) for arm in arms for seed in whole]


def with_power_set(power_set: str | None, out: Path, file_name: str) -> tuple[list[str], Path, str]:
    """Return settings, folder and file name of runs with a radio's powers; None: those of the preset."""
    if power_set is None:
        return [], out, file_name
    settings = [f"cell.radio.power_set={power_set}"]
    return settings, out.with_name(f"{out.name}-{power_set}"), f"{file_name}_{power_set}"


def argument_parser(
    description: str | None, *, out: Path, seeds: Sequence[int] = range(5)
) -> argparse.ArgumentParser:
    """Return what reads the folder, the data folder, the seeds and the radio's powers of a command line."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=out)
    parser.add_argument("--data-dir", type=Path, default=None)
    parser.add_argument("--seeds", type=int, nargs="+", default=list(seeds))
    parser.add_argument("--report", action="store_true", help="run nothing, read what is finished")
    parser.add_argument("--power-set", choices=POWER_SETS, help="of the radio; by default the preset's own")
    return parser
