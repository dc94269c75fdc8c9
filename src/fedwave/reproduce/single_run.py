"""One run from its settings to what is kept of it: without a run folder, as that is small."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

import numpy as np

from fedwave.data import Dataset
from fedwave.experiments import Experiment
from fedwave.experiments.build import build_simulation, load_experiment_dataset
from fedwave.experiments.schema import DataSection
from fedwave.reproduce.profile import ROUND_OF_THE_PAPER
from fedwave.reproduce.test_readings import OWN_TEST, read_test
from fedwave.runs.kept_runs import KeptRun
from fedwave.runs.provenance import processor, run_key, versions
from fedwave.runs.round_cache import RoundCache, with_cache
from fedwave.runs.run import play_rounds
from fedwave.server import Plan
from fedwave.units import FloatArray

DRAWN = ("synthetic", "sinusoids")  # datasets that depend on the seed
FALL = 1e-9  # relative fall of an objective that rounding may cause
CURVES = ("heldout_loss", "energy_j", "delay_s")  # columns that are kept round by round, where a run has them

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
}
ENDS = ("heldout_loss", "heldout_accuracy", "heldout_accuracy_pooled", "train_loss")
COLUMNS = (*ENDS, *MEANS.values(), "falls", "cpu_time_s")  # all that figures are made of


def single_run(
    experiment: Experiment,
    *,
    command: str = "",
    with_readings: bool = False,
    cache: RoundCache | None = None,
    data_dir: Path | None = None,
) -> KeptRun:
    """Return what is kept of a run; a ``cache`` shared with other runs saves what they have in common."""
    start = time.perf_counter()
    cache = cache if cache is not None else RoundCache()
    hits_before = cache.hits
    seed = experiment.seed if experiment.data.dataset.kind in DRAWN else 0
    data = _dataset(experiment.data.model_dump_json(exclude_none=True), seed, data_dir)
    simulation = with_cache(build_simulation(experiment, dataset=data), cache, experiment)
    rows, readings = [], {}
    for played in play_rounds(simulation, simulation.initial_state()):
        rows.append(
            {**played.record.columns, **_planning(played.record.plan), "cpu_time_s": played.cpu_time_s}
        )
        after = played.state.next_round
        if with_readings and after in (ROUND_OF_THE_PAPER, experiment.num_rounds):
            readings[str(after)] = read_test(simulation, played.state.parameters)
    columns = {
        name: np.array([row[name] for row in rows], dtype=np.float64) for name in COLUMNS if name in rows[0]
    }
    num_remembered = cache.hits - hits_before
    return KeptRun(
        key=run_key(experiment),
        command=command,
        made_with={**versions(), "processor": processor()},
        num_rounds=experiment.num_rounds,
        seconds=time.perf_counter() - start,
        num_remembered=num_remembered,
        figures=figures_of(columns, is_timed=num_remembered == 0),
        curves={name: columns[name].tolist() for name in CURVES if name in columns},
        test_readings=readings,
    )


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

    return {
        "accuracy": after("heldout_accuracy", last),
        "accuracy_pooled": after("heldout_accuracy_pooled", last),
        "loss": after("heldout_loss", last),
        "loss_19": after("heldout_loss", ROUND_OF_THE_PAPER),
        "train_loss_19": after("train_loss", ROUND_OF_THE_PAPER),
        **{
            name: float(values.mean()) if (values := measured(column)).size else math.nan
            for name, column in MEANS.items()
        },
        "falls": float(falls.sum()) if (falls := measured("falls")).size else math.nan,
        "cpu_time_s": float(np.median(columns["cpu_time_s"])) if is_timed else math.nan,
    }


def accuracy_after(run: KeptRun, rounds: int) -> float:
    """Return the accuracy at the end or where the test was read; NaN elsewhere: it is not kept."""
    if rounds == run.num_rounds:
        return run.figures["accuracy"]
    readings = run.test_readings.get(str(rounds))
    return math.nan if readings is None else readings[OWN_TEST]["accuracy"]


def _planning(plan: Plan | None) -> dict[str, float]:
    """Return how a round's allocation came about: its iterations, and how often its objective fell."""
    if plan is None or plan.allocation is None:
        return {"iterations": math.nan, "falls": math.nan}
    trace = plan.allocation.trace
    falls = np.diff(trace) < -FALL * np.maximum(1.0, np.abs(trace[:-1]))
    return {"iterations": float(len(trace)), "falls": float(falls.sum())}


@lru_cache(maxsize=2)
def _dataset(section: str, seed: int, data_dir: Path | None) -> Dataset:
    """Return a dataset; the last ones are kept, as reading one can take longer than a run."""
    experiment = Experiment(seed=seed, data=DataSection.model_validate_json(section))
    return load_experiment_dataset(experiment, data_dir=data_dir)
