"""Run an experiment into a folder, and resume one from its folder."""

from __future__ import annotations

import platform
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, Protocol

from fedwave.data import Dataset, OwnSplit
from fedwave.errors import RunError
from fedwave.experiments.build import build_simulation, load_experiment_dataset, load_split
from fedwave.experiments.load import experiment_to_toml, load_experiment
from fedwave.experiments.schema import GIVEN, Experiment
from fedwave.runs.folder import CONFIG, ENVIRONMENT, SUMMARY, RunFolder
from fedwave.runs.summary import summarise
from fedwave.simulation.records import RoundRecord
from fedwave.simulation.simulation import Simulation


class StopRun(Exception):  # noqa: N818 - it is a request, not an error
    """Raised by an observer to end a run after the round at hand. The run can be resumed."""


class Observer(Protocol):
    """Watches a run from outside: a progress bar, a logger. It cannot change what is computed.

    To end the run early, ``round_done`` raises ``StopRun("why")``.
    """

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
    """Where a run is, and its summary; ``stopped`` says why it ended before its last round, if it did."""

    path: Path
    summary: dict[str, Any]
    stopped: str | None = None


def run_experiment(
    experiment: Experiment,
    out: Path | str,
    *,
    data_dir: Path | None = None,
    dataset: Dataset | None = None,
    split: OwnSplit | None = None,
    observers: Iterable[Observer] = (),
) -> RunResult:
    """Train, and leave a run folder at ``out``.

    ``dataset`` and ``split`` (who owns which sample) replace those that the experiment names.
    """
    data = dataset if dataset is not None else load_experiment_dataset(experiment, data_dir=data_dir)
    own = _own_split(experiment, data, split)
    simulation = build_simulation(experiment, dataset=data, split=own)
    folder = RunFolder.create(
        Path(out),
        config_toml=experiment_to_toml(experiment),
        environment=_environment(experiment, data, own),
    )
    return _go_on(simulation, experiment, folder, data, observers)


def resume_run(
    path: Path | str,
    *,
    data_dir: Path | None = None,
    dataset: Dataset | None = None,
    split: OwnSplit | None = None,
    observers: Iterable[Observer] = (),
) -> RunResult:
    """Go on with a run that was stopped; it ends as if it had never been interrupted."""
    folder = RunFolder.open(Path(path))
    experiment = load_experiment(folder.path / CONFIG)
    data = dataset if dataset is not None else load_experiment_dataset(experiment, data_dir=data_dir)
    recorded = folder.read_json(ENVIRONMENT)
    if recorded.get("dataset_fingerprint") != data.fingerprint():
        raise RunError(
            f"{folder.path} was started on other data: fingerprint {recorded.get('dataset_fingerprint')}, "
            f"now {data.fingerprint()} from {data.source}. Point --data-dir or FEDWAVE_DATA to it."
        )
    own = _own_split(experiment, data, split)
    given = None if own is None else own.fingerprint()
    if recorded.get("split_fingerprint") != given:
        raise RunError(
            f"{folder.path} was started with another split of the data among devices: fingerprint "
            f"{recorded.get('split_fingerprint')}, now {given}. Restore partition.path, or give resume_run "
            "the same split."
        )
    simulation = build_simulation(experiment, dataset=data, split=own)
    return _go_on(simulation, experiment, folder, data, observers)


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
    state = simulation.initial_state() if saved is None else saved.to(simulation.train.torch_device)
    folder.forget_from(state.next_round)
    for observer in watching:
        observer.started(folder.path, experiment, state.next_round, simulation.warnings)
    if saved is None:
        folder.save_checkpoint(state)
    stopped: str | None = None
    is_due = True
    with closing(simulation.open_devices()) as devices:
        while state.next_round < experiment.num_rounds and stopped is None:
            state, record = simulation.run_round(state, devices)
            folder.append(record)
            is_last = state.next_round == experiment.num_rounds
            is_due = is_last or state.next_round % experiment.execution.checkpoint_every == 0
            if is_due:
                folder.save_checkpoint(state)
            stopped = _tell(watching, record)
    if stopped is not None and not is_due:
        folder.save_checkpoint(state)
    folder.save_model(simulation.model.to_state_dict(state.parameters))
    summary = summarise(simulation, experiment, folder, data)
    folder.write_json(SUMMARY, summary)
    is_finished = state.next_round == experiment.num_rounds
    return RunResult(folder.path, summary, None if is_finished else stopped)


def _own_split(experiment: Experiment, data: Dataset, split: OwnSplit | None) -> OwnSplit | None:
    """Return the split that is given, from Python or by the experiment; None where the data is dealt out."""
    if split is None and experiment.partition.kind == GIVEN:
        return load_split(experiment, data)
    return split


def _tell(watching: Iterable[Observer], record: RoundRecord) -> str | None:
    """Show a round to all observers; return why the run is to stop, if one of them says so."""
    stopped = None
    for observer in watching:
        try:
            observer.round_done(record)
        except StopRun as request:
            stopped = str(request) or "an observer stopped it"
    return stopped


def _log_observers(experiment: Experiment, folder: RunFolder) -> list[Observer]:
    if not experiment.execution.tensorboard:
        return []
    from fedwave.runs.tensorboard import TensorBoardLog

    return [TensorBoardLog(folder.path / "tensorboard")]


def _environment(experiment: Experiment, data: Dataset, split: OwnSplit | None) -> dict[str, Any]:
    packages = ("fedwave", "torch", "numpy", "scipy", "safetensors", "pydantic")
    return {
        "seed": experiment.seed,
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
        "versions": {name: _version(name) for name in packages},
        "dataset": data.name,
        "dataset_source": data.source,
        "dataset_fingerprint": data.fingerprint(),
        **({} if split is None else {"split_fingerprint": split.fingerprint()}),
    }


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
