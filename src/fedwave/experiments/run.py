"""Run an experiment into a folder, and resume one from its folder."""

from __future__ import annotations

import platform
from collections.abc import Iterable
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import Any, Protocol

from fedwave.data import Dataset
from fedwave.errors import RunError
from fedwave.experiments.build import build_simulation, load_experiment_dataset
from fedwave.experiments.load import experiment_to_toml, load_experiment
from fedwave.experiments.schema import Experiment
from fedwave.learning.parameters import num_parameters
from fedwave.simulation.cell_scheduler import CellScheduler
from fedwave.simulation.records import RoundRecord
from fedwave.simulation.run_folder import CONFIG, ENVIRONMENT, SUMMARY, RunFolder
from fedwave.simulation.simulation import Simulation
from fedwave.simulation.workers import Workers


class Observer(Protocol):
    """Watches a run from outside: a progress bar, a logger. It cannot change what is computed."""

    def started(
        self, folder: Path, experiment: Experiment, next_round: int, warnings: tuple[str, ...]
    ) -> None:
        """Called once, before the first round of this process; ``warnings`` are for the user to read."""
        ...

    def round_done(self, record: RoundRecord) -> None:
        """Called after each round, when its rows are on disk."""
        ...


@dataclass(frozen=True)
class RunResult:
    """Where a finished run is, and its summary."""

    path: Path
    summary: dict[str, Any]


def run_experiment(
    experiment: Experiment,
    out: Path | str,
    *,
    data_dir: Path | None = None,
    dataset: Dataset | None = None,
    observers: Iterable[Observer] = (),
) -> RunResult:
    """Train, and leave a run folder at ``out``. ``dataset`` replaces the one that the experiment names."""
    data = dataset if dataset is not None else load_experiment_dataset(experiment, data_dir=data_dir)
    simulation = build_simulation(experiment, dataset=data)
    folder = RunFolder.create(
        Path(out), config_toml=experiment_to_toml(experiment), environment=_environment(experiment, data)
    )
    return _go_on(simulation, experiment, folder, data, observers)


def resume_run(
    path: Path | str,
    *,
    data_dir: Path | None = None,
    dataset: Dataset | None = None,
    observers: Iterable[Observer] = (),
) -> RunResult:
    """Go on with a run that was stopped; it ends as if it had never been interrupted."""
    folder = RunFolder.open(Path(path))
    experiment = load_experiment(folder.path / CONFIG)
    data = dataset if dataset is not None else load_experiment_dataset(experiment, data_dir=data_dir)
    recorded = folder.read_json(ENVIRONMENT).get("dataset_fingerprint")
    if recorded != data.fingerprint():
        raise RunError(
            f"{folder.path} was started on other data: fingerprint {recorded}, now {data.fingerprint()} from "
            f"{data.source}. Point --data-dir or FEDWAVE_DATA to the same files."
        )
    return _go_on(build_simulation(experiment, dataset=data), experiment, folder, data, observers)


def _go_on(
    simulation: Simulation,
    experiment: Experiment,
    folder: RunFolder,
    data: Dataset,
    observers: Iterable[Observer],
) -> RunResult:
    """Run from the folder's checkpoint (or from the start) to the last round."""
    watching = [*observers, *_log_observers(experiment, folder)]
    saved = folder.load_checkpoint()
    state = saved or simulation.initial_state()
    device = simulation.train.torch_device
    on_device = {name: value.to(device) for name, value in state.parameters.items()}
    state = replace(state, parameters=on_device)
    folder.forget_from(state.next_round)
    for observer in watching:
        observer.started(folder.path, experiment, state.next_round, simulation.warnings)
    with Workers(1 if device.type == "cuda" else experiment.execution.workers) as workers:
        if saved is None:
            folder.save_checkpoint(state)
        while state.next_round < experiment.num_rounds:
            state, record = simulation.run_round(state, workers)
            folder.append(record)
            is_last = state.next_round == experiment.num_rounds
            if is_last or state.next_round % experiment.execution.checkpoint_every == 0:
                folder.save_checkpoint(state)
            for observer in watching:
                observer.round_done(record)
    folder.save_model(simulation.model.to_state_dict(state.parameters))
    summary = _summary(simulation, experiment, folder, data)
    folder.write_json(SUMMARY, summary)
    return RunResult(folder.path, summary)


def _log_observers(experiment: Experiment, folder: RunFolder) -> list[Observer]:
    if not experiment.execution.tensorboard:
        return []
    from fedwave.experiments.tensorboard import TensorBoardLog

    return [TensorBoardLog(folder.path / "tensorboard")]


def _environment(experiment: Experiment, data: Dataset) -> dict[str, Any]:
    packages = ("fedwave", "torch", "numpy", "scipy", "safetensors", "pydantic")
    return {
        "seed": experiment.seed,
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
        "versions": {name: _version(name) for name in packages},
        "dataset": data.name,
        "dataset_source": data.source,
        "dataset_fingerprint": data.fingerprint(),
    }


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _summary(
    simulation: Simulation, experiment: Experiment, folder: RunFolder, data: Dataset
) -> dict[str, Any]:
    """Return the final figures, read from the tables so that a resumed run sums up all of its rounds."""
    columns = folder.rounds()
    tested = columns["heldout_accuracy"]
    measured = [value for value in tested if value == value] if not isinstance(tested, list) else []
    last = {
        name: float(columns[name][-1])
        for name in ("train_loss", "heldout_loss", "heldout_accuracy", "heldout_accuracy_pooled")
        if not isinstance(columns[name], list) and columns[name][-1] == columns[name][-1]
    }
    return {
        "name": experiment.name,
        "seed": experiment.seed,
        "num_rounds": experiment.num_rounds,
        "algorithm": experiment.algorithm.name,
        "gradient": experiment.algorithm.gradient,
        "selection": experiment.cell.selection if experiment.cell else experiment.algorithm.selection,
        "dataset": data.name,
        "num_train_devices": len(simulation.train),
        "num_heldout_devices": len(simulation.heldout),
        "num_parameters": num_parameters(simulation.initial_state().parameters),
        "final": last,
        "best_heldout_accuracy": float(max(measured)) if measured else None,
        "share_below_turning_point": float(columns["share_below_turning_point"].mean()),
        **_cost_summary(simulation, columns),
        "wall_time_s": float(columns["wall_time_s"].sum()),
    }


def _cost_summary(simulation: Simulation, columns: dict[str, Any]) -> dict[str, Any]:
    """Return what a run over a cell cost in all; nothing without a cell."""
    scheduler = simulation.scheduler
    if not isinstance(scheduler, CellScheduler):
        return {}
    return {
        "cell": {
            "method": scheduler.method,
            "selection": scheduler.selection,
            "contribution_scale": scheduler.scale.kind,
            "contribution_constant": scheduler.scale.constant,
            "model_bits": scheduler.model_bits,
            "energy_j": float(columns["cumulative_energy_j"][-1]),
            "delay_s": float(columns["cumulative_delay_s"][-1]),
            "uploads": int(columns["num_selected"].sum()),
            "uploads_received": int(columns["num_received"].sum()),
        }
    }
