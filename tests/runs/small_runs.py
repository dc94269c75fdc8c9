"""A small experiment for the tests of runs, what a run leaves behind, and observers that end it early."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

from fedwave.experiments import Experiment, experiment_from
from fedwave.experiments.schemes import expand_scheme
from fedwave.runs.folder import RunFolder
from fedwave.runs.run import StopRun
from fedwave.settings import merge
from fedwave.simulation.records import RoundRecord

SMALL: dict[str, Any] = {
    "name": "small",
    "num_rounds": 6,
    "data": {"dataset": {"kind": "synthetic", "num_samples": 500, "num_classes": 4, "shape": [1, 8, 8]}},
    "partition": {"num_devices": 12},
    "model": {"kind": "cnn", "channels": [4]},
    "algorithm": {"inner_lr": 0.02, "meta_lr": 0.02, "query_batch_size": 4},
    "selection": {"num_selected": 3},
}


def experiment(**changes: Any) -> Experiment:
    """Return the small experiment with a layer of changes on top."""
    return experiment_from(merge(SMALL, expand_scheme(changes), Experiment))


def contents(folder: Path) -> dict[str, Any]:
    """Everything a run leaves, but for the time it took."""
    tables = {}
    for name in ("rounds.csv", "devices.csv", "heldout.csv"):
        with (folder / name).open() as file:
            tables[name] = [
                {k: v for k, v in row.items() if k != "wall_time_s"} for row in csv.DictReader(file)
            ]
    summary = json.loads((folder / "summary.json").read_text())
    del summary["wall_time_s"]
    return {
        **tables,
        "model": (folder / "model.safetensors").read_bytes(),
        "checkpoint": checkpoint(folder),
        "summary": summary,
        "config": (folder / "config.toml").read_text(),
    }


def results(folder: Path) -> dict[str, Any]:
    """What a run leaves, but for its settings: for runs that differ in when they save or what they read."""
    found = contents(folder)
    del found["config"]
    return found


def checkpoint(folder: Path) -> tuple[int, dict[str, bytes]]:
    """The round and the tensors of a run's checkpoint; its checksums are also of the time it took."""
    state = RunFolder(folder).load_checkpoint()
    assert state is not None
    return state.next_round, {name: value.numpy().tobytes() for name, value in state.to_tensors().items()}


class Watcher:
    """An observer that remembers what it was told."""

    def __init__(self) -> None:
        self.started_at: list[int] = []
        self.seen: list[int] = []

    def started(self, folder: Path, experiment: Experiment, next_round: int, warnings: Any) -> None:
        self.started_at.append(next_round)

    def round_done(self, record: RoundRecord) -> None:
        self.seen.append(record.round_index)


class StopAfter(Watcher):
    """An observer that stops the run like Ctrl-C, after some rounds."""

    def __init__(self, rounds: int) -> None:
        super().__init__()
        self.rounds = rounds

    def round_done(self, record: RoundRecord) -> None:
        super().round_done(record)
        if len(self.seen) == self.rounds:
            raise KeyboardInterrupt


class FailAfter(StopAfter):
    """An observer with a fault of its own."""

    def round_done(self, record: RoundRecord) -> None:
        try:
            super().round_done(record)
        except KeyboardInterrupt:
            raise ValueError("a bug") from None


class AskToStopAfter(StopAfter):
    """An observer that asks for the end of the run, as an early-stopping rule would."""

    def round_done(self, record: RoundRecord) -> None:
        try:
            super().round_done(record)
        except KeyboardInterrupt:
            raise StopRun("good enough") from None


TINY: dict[str, Any] = {
    "data": {"dataset": {"shape": [6]}},
    "model": {"kind": "softmax"},
    "num_rounds": 4,
}


def tiny(**changes: Any) -> Any:
    return experiment(**{**TINY, **changes})


def long_term_settings(by: str) -> dict[str, Any]:
    """Return settings with all that a long-term run may remember: charges, queues, memory, a budget."""
    return {
        "num_rounds": 40,
        "selection": {
            "num_selected": 3,
            "policy": {"kind": "top-contribution", "num_candidates": 4, "remembers": True},
        },
        "algorithm": {"planner": {"kind": "drift-plus-penalty", "by": by, "budget_j": 0.05, "v": 2.0}},
        "cell": {
            "preset": "paper",
            "num_blocks": 3,
            "battery": {
                "capacity_j": 6.0,
                "initial_charge": {"low": 0.2, "high": 1.0},
                "draw_w": 0.01,
                "interval_s": 30.0,
                "min_charge": 0.05,
                "harvest": {"kind": "day", "peak_w": {"low": 0.01, "high": 0.08}, "start_h": 7},
            },
        },
        "stop": {"time_s": 300.0},
    }


def files_of(folder: Path) -> dict[str, bytes]:
    """Every file in a folder but its lock, by name."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != ".lock"
    }


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
