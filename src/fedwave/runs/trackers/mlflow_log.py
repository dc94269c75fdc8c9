"""MLflow: a SQLite store in the run folder, or the store that ``MLFLOW_TRACKING_URI`` names."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fedwave.errors import RunError, import_extra
from fedwave.experiments.schema import Experiment
from fedwave.runs.folder import RunFolder
from fedwave.runs.provenance import digest
from fedwave.runs.trackers import numbers_of, rounds_on_disk, settings_of, summary_of
from fedwave.simulation.records import RoundRecord

FOLDER = "mlflow"  # in the run folder
STATE = f"{FOLDER}/run.json"  # which run of which store it is
STORE = f"{FOLDER}/mlflow.db"
URI, EXPERIMENT = "MLFLOW_TRACKING_URI", "MLFLOW_EXPERIMENT_NAME"
LOCAL = "local"
PER_BATCH = 100  # parameters or tags that a store takes at once


class MlflowLog:
    """Logs settings as parameters, every number of a round as a metric, and the summary at the end."""

    def __init__(self) -> None:
        os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")  # before the import, which would begin it
        self._tracking = import_extra("mlflow.tracking", purpose="execution.mlflow", extra="mlflow")
        for module in ("sqlalchemy", "alembic"):  # for the store in the run folder
            import_extra(module, purpose="execution.mlflow", extra="mlflow")
        self._uri = os.environ.get(URI, "")
        self._run_id = ""
        self._next_round = 0  # the first that the store does not have

    def started(
        self, folder: Path, experiment: Experiment, next_round: int, warnings: tuple[str, ...]
    ) -> None:
        """Go on with the folder's run of this store, or begin one; log the rounds that it lacks."""
        del warnings
        store = digest(self._uri) if self._uri else LOCAL  # an address may hold a password
        run_folder = RunFolder(folder)
        (folder / FOLDER).mkdir(exist_ok=True)
        held = run_folder.read_json(STATE) if (folder / STATE).exists() else {}
        with self._one_line():
            address = self._uri or f"sqlite:///{(folder / STORE).absolute()}"
            self._client = self._tracking.MlflowClient(tracking_uri=address)
            if held.get("store") == store:
                self._run_id = str(held.get("run_id"))
                self._client.update_run(self._run_id, status="RUNNING")
                past = self._client.get_metric_history(self._run_id, "round")
                self._next_round = max((metric.step + 1 for metric in past), default=0)
            else:
                self._run_id = self._new_run(experiment, (folder / FOLDER).absolute())
                run_folder.write_json(STATE, {"store": store, "run_id": self._run_id})
        for k, numbers in rounds_on_disk(folder, self._next_round, next_round):
            self._log(k, numbers)

    def _new_run(self, experiment: Experiment, own_folder: Path) -> str:
        name = os.environ.get(EXPERIMENT, "fedwave")
        known = self._client.get_experiment_by_name(name)
        where = None if self._uri else (own_folder / "artifacts").as_uri()
        group = known.experiment_id if known else self._client.create_experiment(name, where)
        run = self._client.create_run(group, run_name=f"{experiment.name}, seed {experiment.seed}")
        settings = [
            self._tracking.client.Param(key, str(value)) for key, value in settings_of(experiment).items()
        ]
        for start in range(0, len(settings), PER_BATCH):
            self._client.log_batch(run.info.run_id, params=settings[start : start + PER_BATCH])
        return str(run.info.run_id)

    def round_done(self, record: RoundRecord) -> None:
        """Log the round in one step, unless the store has it."""
        if record.round_index >= self._next_round:
            self._log(record.round_index, numbers_of({"round": record.round_index, **record.columns}))

    def _log(self, step: int, numbers: Mapping[str, float]) -> None:
        now_ms = int(1000 * time.time())
        with self._one_line():
            self._client.log_batch(
                self._run_id,
                metrics=[
                    self._tracking.client.Metric(name, value, now_ms, step) for name, value in numbers.items()
                ],
            )
        self._next_round = step + 1

    def ended(self, summary: Mapping[str, Any] | None, *, has_failed: bool) -> None:
        """Log the summary, numbers as metrics and words as tags, and say how the run ended."""
        if not self._run_id:
            return
        with self._one_line():
            if summary is not None:
                self._log_summary(summary_of(summary))
            status = "FINISHED" if summary is not None else "FAILED" if has_failed else "KILLED"
            self._client.set_terminated(self._run_id, status=status)

    def _log_summary(self, summary: Mapping[str, Any]) -> None:
        before = self._client.get_run(self._run_id).data.metrics  # a finished run may be resumed again
        new = {name: value for name, value in numbers_of(summary).items() if before.get(name) != value}
        if new:
            self._log(self._next_round - 1, new)
        for name, value in summary.items():
            if isinstance(value, str):
                self._client.set_tag(self._run_id, name, value)

    @contextmanager
    def _one_line(self) -> Iterator[None]:
        """Say in one line what MLflow cannot do; what it says of new tables in its store is not heard."""
        talk = logging.getLogger("mlflow")
        before = talk.level
        talk.setLevel(logging.WARNING)
        try:
            yield
        except self._tracking.client.MlflowException as error:
            raise RunError(
                f"MLflow cannot log to {URI if self._uri else STORE}: {error}. Mend that, or set "
                "execution.mlflow = false in the run's config.toml; then resume the run."
            ) from error
        finally:
            talk.setLevel(before)
