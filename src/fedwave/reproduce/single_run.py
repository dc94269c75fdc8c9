"""One run from its settings to what is kept of it: without a run folder, as that is small."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from fedwave.data import Dataset
from fedwave.devices.base import HeldOutResult
from fedwave.errors import DivergenceError, RunError
from fedwave.experiments import Experiment
from fedwave.experiments.build import build_simulation, faulty_devices, load_experiment_dataset
from fedwave.experiments.schema import DataSection
from fedwave.reproduce.judgements import FIGURES, OWN_TEST, read_test
from fedwave.reproduce.profile import ROUND_OF_THE_PAPER
from fedwave.runs.kept_runs import KeptRun, curve_of
from fedwave.runs.provenance import processor, run_key, versions
from fedwave.runs.round_cache import RoundCache, with_cache
from fedwave.runs.run import play_rounds
from fedwave.server import Plan
from fedwave.units import FloatArray, IntArray

DRAWN = ("synthetic", "sinusoids")  # datasets that depend on the seed
FALL = 1e-9  # relative fall of an objective that rounding may cause
# Columns that are kept round by round, where a run has them.
CURVES = (
    "heldout_loss",
    "heldout_accuracy",
    "training_loss",
    "training_accuracy",
    "update_norm",
    "energy_j",
    "delay_s",
)
# These are empty without evaluation.training_devices, and then not kept.
TRAINING = ("training_loss", "training_accuracy", "training_loss_weighted")
WORST = 0.1  # the share of held-out devices that are served worst

# Means over the rounds: the figure's name, and its column in rounds.csv (iterations are the planner's).
MEANS = {
    "energy_j": "energy_j",
    "delay_s": "delay_s",
    "compute_energy_j": "compute_energy_j",
    "upload_energy_j": "upload_energy_j",
    "received": "num_received",
    "objective": "objective",
    "contribution": "contribution",
    "iterations": "iterations",
    "share_below_turning_point": "share_below_turning_point",
    "gradient_norm": "gradient_norm_mean",
    "update_norm": "update_norm",
}
MEDIANS = {"energy_j_median": "energy_j", "delay_s_median": "delay_s"}  # where means do not exist
ENDS = ("heldout_loss", "heldout_accuracy", "heldout_accuracy_pooled", "train_loss", *TRAINING)
COLUMNS = (*ENDS, *MEANS.values(), "falls", "cpu_time_s")  # all that figures are made of


def single_run(
    experiment: Experiment,
    *,
    command: str = "",
    with_readings: bool = False,
    cache: RoundCache | None = None,
    data_dir: Path | None = None,
) -> KeptRun:
    """Return what is kept of a run; a ``cache`` shared with other runs saves what they have in common.

    A run that diverges is a result: its figures and curves are NaN from there on.
    """
    start = time.perf_counter()
    cache = cache if cache is not None else RoundCache()
    hits_before = cache.hits
    simulation = with_cache(
        build_simulation(experiment, dataset=dataset_of(experiment, data_dir)), cache, experiment
    )
    seen = SeenRounds(experiment, len(simulation.train))
    readings = {}
    with suppress(DivergenceError):
        for played in play_rounds(simulation, simulation.initial_state()):
            record = played.record
            row = {**record.columns, **_planning(record.plan), "cpu_time_s": played.cpu_time_s}
            selected = np.zeros(0, dtype=np.int64) if record.plan is None else record.plan.selected
            seen.add(row, selected, record.heldout)
            after = played.state.next_round
            if with_readings and after in (ROUND_OF_THE_PAPER, experiment.num_rounds):
                readings[str(after)] = read_test(simulation, played.state.parameters)
    num_remembered = cache.hits - hits_before
    return KeptRun(
        key=run_key(experiment),
        command=command,
        made_with=made_with(),
        num_rounds=experiment.num_rounds,
        seconds=time.perf_counter() - start,
        num_remembered=num_remembered,
        figures=seen.figures(is_timed=num_remembered == 0),
        curves=seen.curves(CURVES),
        test_readings=readings,
    )


class SeenRounds:
    """The rounds of a run as they come, and what is kept of them."""

    def __init__(self, experiment: Experiment, num_devices: int) -> None:
        self._experiment = experiment
        self._faulty = faulty_devices(experiment, num_devices)
        self._times_chosen = np.zeros(num_devices, dtype=np.int64)
        self._num_uploads = 0
        self._rows: list[Mapping[str, Any]] = []
        self._heldout: HeldOutResult | None = None  # of the last round, where it was evaluated

    def add(self, row: Mapping[str, Any], selected: IntArray, heldout: HeldOutResult | None) -> None:
        """Take a round into account: its columns, who was chosen, and its evaluation."""
        self._rows.append(row)
        self._times_chosen[selected] += 1
        self._num_uploads += len(selected)
        self._heldout = heldout

    def curves(self, names: Iterable[str]) -> dict[str, list[float]]:
        """Return the columns that are kept round by round, where the run has them."""
        columns = self._columns(names)
        if not self._experiment.evaluation.training_devices:
            columns = {name: values for name, values in columns.items() if name not in TRAINING}
        return {name: curve_of(values) for name, values in columns.items()}

    def figures(self, *, is_timed: bool) -> dict[str, float]:
        """Return the figures of the run; accuracy and loss of one that diverged are NaN."""
        is_whole = len(self._rows) == self._experiment.num_rounds
        times_faulty = self._times_chosen[self._faulty]
        has_faulty = times_faulty.size > 0 and self._num_uploads > 0
        return {
            **figures_of(self._columns(COLUMNS), is_timed=is_timed),
            "accuracy_worst_tenth": worst_tenth(self._heldout) if is_whole else math.nan,
            "never_chosen": float(np.mean(self._times_chosen == 0)),
            "faulty_chosen": float(times_faulty.mean()) / len(self._rows) if has_faulty else math.nan,
            "faulty_uploads": float(times_faulty.sum()) / self._num_uploads if has_faulty else math.nan,
            "rounds_played": float(len(self._rows)),
        }

    def _columns(self, names: Iterable[str]) -> dict[str, FloatArray]:
        """Return the columns with a value for each round, NaN where there is none."""
        missing = [math.nan] * (self._experiment.num_rounds - len(self._rows))
        return {
            name: np.array([*(row[name] for row in self._rows), *missing], dtype=np.float64)
            for name in names
            if not self._rows or name in self._rows[0]
        }


def worst_tenth(heldout: HeldOutResult | None) -> float:
    """Return the mean metric of the tenth of the devices with the lowest, at least one; NaN of none."""
    if heldout is None:
        return math.nan
    count = max(1, round(WORST * len(heldout.metric)))
    return float(np.sort(heldout.metric)[:count].mean())


def made_with() -> dict[str, Any]:
    """Return the versions and the processor that a run is made with."""
    return {**versions(), "processor": processor()}


def figures_of(columns: Mapping[str, FloatArray], *, is_timed: bool) -> dict[str, float]:
    """Return accuracy and loss at the end and in the paper's round, and means; NaN where there is none.

    ``columns`` have a value for each round, NaN where nothing was measured. Rounds that were known from
    another run say nothing about time: such a run is not timed.
    """
    last = len(columns["heldout_loss"])

    def after(name: str, rounds: int) -> float:
        values = columns.get(name, ())
        return float(values[rounds - 1]) if len(values) >= rounds else math.nan

    def measured(name: str) -> FloatArray:
        values = columns.get(name, np.zeros(0))
        return values[np.isfinite(values)]

    def over_rounds(figure: Callable[[FloatArray], Any], name: str) -> float:
        values = measured(name)
        return float(figure(values)) if values.size else math.nan

    times = measured("cpu_time_s")
    return {
        "accuracy": after("heldout_accuracy", last),
        "accuracy_pooled": after("heldout_accuracy_pooled", last),
        "loss": after("heldout_loss", last),
        "loss_19": after("heldout_loss", ROUND_OF_THE_PAPER),
        "train_loss_19": after("train_loss", ROUND_OF_THE_PAPER),
        "training_loss": after("training_loss", last),
        "training_loss_weighted": after("training_loss_weighted", last),
        "training_accuracy": after("training_accuracy", last),
        "training_loss_19": after("training_loss", ROUND_OF_THE_PAPER),
        "training_loss_weighted_19": after("training_loss_weighted", ROUND_OF_THE_PAPER),
        **{name: over_rounds(np.mean, column) for name, column in MEANS.items()},
        **{name: over_rounds(np.median, column) for name, column in MEDIANS.items()},
        "falls": over_rounds(np.sum, "falls"),
        "cpu_time_s": float(np.median(times)) if is_timed and times.size else math.nan,
    }


def require_figures(run: KeptRun, where: Path) -> None:
    """Raise if a run that was kept in ``where`` lacks a figure that is counted on."""
    wrong = {"accuracy"} - set(run.figures)
    for judgements in run.test_readings.values():
        wrong |= {OWN_TEST} - set(judgements)
        wrong |= {name for own in judgements.values() for name in set(FIGURES) - set(own)}
    if wrong:
        raise RunError(
            f"the finished run {run.key} of {where} does not have the figures of a run: it lacks "
            f'"{min(wrong)}". Delete its line to run it anew.'
        )


def accuracy_after(run: KeptRun, rounds: int) -> float:
    """Return the accuracy at the end, where the test was read, or by the curve; NaN where none is kept."""
    if rounds == run.num_rounds:
        return run.figures["accuracy"]
    readings = run.test_readings.get(str(rounds))
    if readings is not None:
        return readings[OWN_TEST]["accuracy"]
    return float(run.curve("heldout_accuracy")[rounds - 1]) if rounds <= run.num_rounds else math.nan


def _planning(plan: Plan | None) -> dict[str, float]:
    """Return how a round's allocation came about: its iterations, and how often its objective fell."""
    if plan is None or plan.allocation is None:
        return {"iterations": math.nan, "falls": math.nan}
    trace = plan.allocation.trace
    falls = np.diff(trace) < -FALL * np.maximum(1.0, np.abs(trace[:-1]))
    return {"iterations": float(len(trace)), "falls": float(falls.sum())}


def dataset_of(experiment: Experiment, data_dir: Path | None) -> Dataset:
    """Return the dataset of a run; the last ones are kept, as reading one can take longer than a run."""
    seed = experiment.seed if experiment.data.dataset.kind in DRAWN else 0
    return _dataset(experiment.data.model_dump_json(exclude_none=True), seed, data_dir)


@lru_cache(maxsize=2)
def _dataset(section: str, seed: int, data_dir: Path | None) -> Dataset:
    experiment = Experiment(seed=seed, data=DataSection.model_validate_json(section))
    return load_experiment_dataset(experiment, data_dir=data_dir)
