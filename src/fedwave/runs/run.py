"""Run an experiment into a folder, and resume one from its folder."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from fedwave.data import Dataset, UserSplit
from fedwave.errors import require_type, shown
from fedwave.experiments.build import (
    build_simulation,
    load_experiment_dataset,
    load_split,
    with_choices,
)
from fedwave.experiments.load import experiment_to_toml
from fedwave.experiments.own_parts import OwnPart, with_parts
from fedwave.experiments.schema import GIVEN, PASSED, DataSection, DatasetPart, Experiment
from fedwave.runs.checks import require_fitting_state, require_fitting_tables
from fedwave.runs.folder import ENVIRONMENT, SUMMARY, RunFolder
from fedwave.runs.lock import locked
from fedwave.runs.notebook import NotebookRun
from fedwave.runs.provenance import describe_start, differences_of_place, identity, require_same_run
from fedwave.runs.summary import summarise
from fedwave.runs.trackers import Tracker, ended_with, trackers_of
from fedwave.simulation.records import RoundRecord
from fedwave.simulation.simulation import Simulation
from fedwave.simulation.state import State
from fedwave.simulation.stop import NEVER


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
class RunResult(NotebookRun):
    """Where a run is, and its summary; ``stopped`` says why it ended before its last round, if it did.

    Its tables are frames, ``.rounds``, ``.devices`` and ``.heldout``, and ``.plot()`` draws it.
    """

    path: Path
    summary: dict[str, Any]
    stopped: str | None = None

    def _facts(self) -> dict[str, object]:
        cell = self.summary.get("cell", {})
        found = {
            "run": f"{self.summary['name']}, seed {self.summary['seed']}",
            "dataset": self.summary["dataset"],
            "rounds": self.summary["num_rounds"],
            **{name.replace("_", " "): value for name, value in self.summary["final"].items()},
            **({"seconds": cell["delay_s"], "joules": cell["energy_j"]} if cell else {}),
            **({"gCO2": cell["carbon_g"]} if "carbon_g" in cell else {}),
            "folder": self.path,
        }
        return found if self.stopped is None else {**found, "stopped": self.stopped}


@dataclass(frozen=True, eq=False)
class PlayedRound:
    """The state after a round, its record, and the seconds that this process computed for it."""

    state: State
    record: RoundRecord
    cpu_time_s: float


def play_rounds(simulation: Simulation, state: State) -> Generator[PlayedRound, None, None]:
    """Yield every round from the given state to the last; close it to end between two rounds.

    The last is that of ``num_rounds``, or the first at which the run's stop rule holds.
    """
    with closing(simulation.open_devices()) as devices:
        while state.next_round < simulation.num_rounds:
            start = time.process_time()  # of this process alone: other runs do not count
            state, record = simulation.run_round(state, devices)
            yield PlayedRound(state, record, time.process_time() - start)
            if simulation.stop.reason(record.columns) is not None:
                return


def run_experiment(
    experiment: Experiment,
    out: Path | str,
    *,
    data_dir: Path | None = None,
    dataset: Dataset | None = None,
    split: UserSplit | None = None,
    adapt: Callable[[Simulation], Simulation] | None = None,
    model: OwnPart | None = None,
    policy: OwnPart | None = None,
    observers: Iterable[Observer] = (),
    overwrite: bool = False,
    progress: bool = False,
) -> RunResult:
    """Train, and leave a run folder at ``out``, which must be new or empty; or, to ``overwrite``, hold a run.

    ``model`` and ``policy`` replace the experiment's: a name, or your own class or function.
    ``dataset`` and ``split`` (who owns which sample) replace those that the experiment names. ``adapt``
    changes the simulation before it runs: a planner, a world or an executor of your own; give it to
    ``resume_run`` too. ``progress`` shows a bar, in a notebook below its cell.
    """
    _require_arguments(out, dataset, split)
    require_type(
        experiment,
        Experiment,
        name="experiment",
        fix='Make one with load_experiment("preset or file") or experiment_from({...}).',
    )
    watching = _require_observers(observers)
    trackers = trackers_of(experiment.execution)
    experiment = with_parts(experiment, model=model, policy=policy)
    if dataset is not None:  # the folder must not name data that the run has not seen
        section = DataSection(dataset=DatasetPart(kind=PASSED), standardise=experiment.data.standardise)
        experiment = experiment.model_copy(update={"data": section})
    data = dataset if dataset is not None else load_experiment_dataset(experiment, data_dir=data_dir)
    own = _own_split(experiment, data, split)
    simulation = (adapt or _as_it_is)(build_simulation(experiment, dataset=data, split=own))
    experiment = with_choices(experiment, simulation)
    state = simulation.initial_state()
    start = describe_start(experiment, data, own, str(simulation.train.torch_device), simulation.task.metric)
    if overwrite:  # not earlier: what is wrong with the new run costs no old one
        RunFolder.clear(Path(out))
    folder = RunFolder.prepare(Path(out))
    with locked(folder.path):
        RunFolder.prepare(folder.path)  # another run may have begun there in the meantime
        folder.begin(config_toml=experiment_to_toml(experiment), environment=start)
        run = _OpenRun(
            simulation=simulation,
            experiment=experiment,
            folder=folder,
            data=data,
            identity=start["identity"],
            trackers=trackers,
        )
        with _bar(progress) as bar:
            return run.go_on(state, [*watching, *bar])


def resume_run(
    path: Path | str,
    *,
    data_dir: Path | None = None,
    dataset: Dataset | None = None,
    split: UserSplit | None = None,
    adapt: Callable[[Simulation], Simulation] | None = None,
    from_start: bool = False,
    observers: Iterable[Observer] = (),
) -> RunResult:
    """Go on with a run that was stopped; it ends as if it had never been interrupted.

    ``from_start`` computes all of its rounds again: where a table was lost, that rebuilds it to the bit.
    """
    _require_arguments(path, dataset, split)
    watching = _require_observers(observers)
    folder = RunFolder.open(Path(path))
    with locked(folder.path):
        experiment = folder.experiment()
        trackers = trackers_of(experiment.execution)
        data = dataset if dataset is not None else load_experiment_dataset(experiment, data_dir=data_dir)
        own = _own_split(experiment, data, split)
        recorded = folder.read_json(ENVIRONMENT)
        require_same_run(folder.path, recorded, experiment, data, own)
        simulation = (adapt or _as_it_is)(build_simulation(experiment, dataset=data, split=own))
        name = identity(experiment, data, own)
        saved = None if from_start else folder.load_checkpoint(name)
        if saved is None:
            state = simulation.initial_state()
        else:
            require_fitting_state(folder.path, saved, simulation)
            require_fitting_tables(folder, simulation)
            state = saved.to(simulation.train.torch_device)
        run = _OpenRun(
            simulation=simulation,
            experiment=experiment,
            folder=folder,
            data=data,
            identity=name,
            trackers=trackers,
            notes=differences_of_place(recorded, str(simulation.train.torch_device)),
        )
        return run.go_on(state, watching)


@dataclass(frozen=True, kw_only=True, eq=False)
class _OpenRun:
    """A run whose folder is locked: what it plays, who watches, and where it goes."""

    simulation: Simulation
    experiment: Experiment
    folder: RunFolder
    data: Dataset
    identity: str  # for its checkpoints
    trackers: list[Tracker]
    notes: tuple[str, ...] = ()  # warnings beside those of the simulation

    def go_on(self, state: State, observers: Sequence[Observer]) -> RunResult:
        """Run from the given state to the last round."""
        with ended_with(self.trackers):
            result = self._play(state, [*observers, *self.trackers])
        for tracker in self.trackers:
            tracker.ended(result.summary, has_failed=False)
        return result

    def _play(self, state: State, watching: Sequence[Observer]) -> RunResult:
        simulation, folder = self.simulation, self.folder
        folder.cut_tables()
        warnings = (*simulation.warnings, *self.notes)
        for warning in warnings:
            logging.getLogger("fedwave").warning("%s", warning)
        for observer in watching:
            observer.started(folder.path, self.experiment, state.next_round, warnings)
        if state.next_round == 0:
            folder.save_checkpoint(state, self.identity)
        stopped = _reached_before(simulation, folder, state)
        is_due = True
        with closing(play_rounds(simulation, state)) as rounds:
            for played in rounds if stopped is None else ():
                state = played.state
                folder.append(played.record)
                is_last = state.next_round == simulation.num_rounds
                is_due = is_last or state.next_round % self.experiment.execution.checkpoint_every == 0
                if is_due:
                    folder.save_checkpoint(state, self.identity)
                stopped = _tell(watching, played.record) or simulation.stop.reason(played.record.columns)
                if stopped is not None:
                    break
        if stopped is not None and not is_due:
            folder.save_checkpoint(state, self.identity)
        folder.save_model(simulation.model.to_state_dict(state.parameters))
        summary = summarise(simulation, self.experiment, folder, self.data, state.parameters)
        folder.write_json(SUMMARY, summary)
        is_finished = state.next_round == simulation.num_rounds
        return RunResult(folder.path, summary, None if is_finished else stopped)


def _reached_before(simulation: Simulation, folder: RunFolder, state: State) -> str | None:
    """Return why a run that is gone on with had come to its end already; None if it goes on."""
    ends_itself = simulation.stop != NEVER or simulation.federation.local_steps is not None
    if not ends_itself or state.next_round == 0:
        return None
    last = {name: values[-1] for name, values in folder.table().items()}
    return simulation.stop.reason(last)


def _require_arguments(folder: object, dataset: object, split: object) -> None:
    require_type(folder, (str, Path), name="the run folder", fix="Give its path.")
    if dataset is not None:
        require_type(
            dataset, Dataset, name="dataset", fix="Make one with dataset_from_arrays(inputs, labels)."
        )
    if split is not None:
        require_type(split, UserSplit, name="split", fix="Make one with user_split(device_of_sample).")


def _require_observers(observers: Iterable[Observer]) -> list[Observer]:
    """Return the observers as a list, or raise before the run begins if one of them cannot watch it."""
    require_type(observers, Iterable, name="observers", fix="Give a list of observers: [observer].")
    found = list(observers)
    for observer in found:
        for method in ("started", "round_done"):
            if not callable(getattr(observer, method, None)):
                raise TypeError(
                    f"an observer must have the methods started and round_done, got {shown(observer)} "
                    f"without {method}. Add it; it may do nothing."
                )
    return found


def _as_it_is(simulation: Simulation) -> Simulation:
    return simulation


def _own_split(experiment: Experiment, data: Dataset, split: UserSplit | None) -> UserSplit | None:
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


@contextmanager
def _bar(is_wanted: bool) -> Iterator[list[Observer]]:
    """Yield a progress bar for where this process runs, if one is wanted, and take it away at the end."""
    if not is_wanted:
        yield []
        return
    from rich.console import Console

    from fedwave.runs.notebook_bar import NotebookBar, in_notebook
    from fedwave.runs.observers import ProgressBar

    if in_notebook():
        yield [NotebookBar()]
        return
    with ProgressBar(Console(stderr=True)) as bar:
        yield [bar]
