"""Trackers of experiments beside the run folder: TensorBoard, MLflow, Weights & Biases.

A tracker holds every round once, also of a run that was killed and gone on with: what it lacks of the rounds
before is read from the run folder, and what it has is not told again.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from numbers import Real
from pathlib import Path
from typing import Any, Protocol

from fedwave.experiments.schema import ExecutionSection, Experiment
from fedwave.runs.folder import RunFolder
from fedwave.runs.provenance import flatten
from fedwave.simulation.records import RoundRecord


class Tracker(Protocol):
    """An observer that is also told how the run ended."""

    def started(
        self, folder: Path, experiment: Experiment, next_round: int, warnings: tuple[str, ...]
    ) -> None:
        """Open the log, or go on with the one that the folder has."""
        ...

    def round_done(self, record: RoundRecord) -> None:
        """Log the round's numbers, unless they are there."""
        ...

    def ended(self, summary: Mapping[str, Any] | None, *, has_failed: bool) -> None:
        """Close the log, with the run's summary unless it was interrupted or has failed."""
        ...


def trackers_of(execution: ExecutionSection) -> list[Tracker]:
    """Return the trackers that are switched on; raise if one of their libraries is not installed."""
    found: list[Tracker] = []
    if execution.tensorboard:
        from fedwave.runs.trackers.tensorboard_log import TensorBoardLog

        found.append(TensorBoardLog())
    if execution.mlflow:
        from fedwave.runs.trackers.mlflow_log import MlflowLog

        found.append(MlflowLog())
    if execution.wandb:
        from fedwave.runs.trackers.wandb_log import WandbLog

        found.append(WandbLog())
    return found


@contextmanager
def ended_with(trackers: list[Tracker]) -> Iterator[None]:
    """Close the logs of a run that fails or is interrupted inside."""
    try:
        yield
    except BaseException as error:
        for tracker in trackers:
            with suppress(Exception):  # what ended the run is the error to be seen
                tracker.ended(None, has_failed=isinstance(error, Exception))
        raise


def numbers_of(columns: Mapping[str, Any]) -> dict[str, float]:
    """Return what is a number among a round's columns, or in a summary; what was not measured is left out."""
    return {
        name: float(value)
        for name, value in columns.items()
        if isinstance(value, Real) and not math.isnan(value)
    }


def rounds_on_disk(folder: Path, first: int, before: int) -> Iterator[tuple[int, dict[str, float]]]:
    """Yield the rounds from ``first`` to the one ``before``, each with the numbers of its row."""
    if first >= before:
        return
    table = RunFolder(folder).table()
    for place, k in enumerate(table["round"].tolist()):
        if first <= k < before:
            yield k, numbers_of({name: values[place] for name, values in table.items()})


def summary_of(summary: Mapping[str, Any]) -> dict[str, Any]:
    """Return a run's summary by dotted keys, told apart from the columns of its last round."""
    return {f"summary.{name}": value for name, value in flatten(summary).items()}


def settings_of(experiment: Experiment) -> dict[str, Any]:
    """Return all settings by their dotted keys."""
    return flatten(experiment.model_dump(mode="json", exclude_none=True))
