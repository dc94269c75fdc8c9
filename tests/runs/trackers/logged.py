"""What trackers hold of a run, read with the readers of their own libraries."""

from __future__ import annotations

import json
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

# Each metric's (step, value) pairs, in the order in which they were logged.
History = dict[str, list[tuple[int, float]]]


def mlflow_runs(folder: Path, *, uri: str = "") -> list[tuple[Any, History]]:
    """Return each run of a folder's store, or of another, with the history of its metrics."""
    from mlflow.tracking import MlflowClient

    client = MlflowClient(tracking_uri=uri or f"sqlite:///{folder / 'mlflow' / 'mlflow.db'}")
    known = client.get_experiment_by_name("fedwave")
    assert known is not None
    return [
        (
            run,
            {
                name: [(one.step, one.value) for one in client.get_metric_history(run.info.run_id, name)]
                for name in run.data.metrics
            },
        )
        for run in client.search_runs([known.experiment_id])
    ]


def wandb_records(folder: Path) -> list[Any]:
    """Return all records of a folder's offline files, in the order in which these were begun."""
    files = sorted((folder / "wandb").glob("offline-run-*/run-*.wandb"))
    return [record for file in files for record in _whole(file)]


def _whole(file: Path) -> list[Any]:
    """Return the records of a closed file: the library's own process writes the last ones a moment later."""
    give_up = time.monotonic() + 60.0
    while time.monotonic() < give_up:
        records = _records(file)
        if any(record.WhichOneof("record_type") == "exit" for record in records):
            return records
        time.sleep(0.05)
    raise AssertionError(f"{file} was not closed")


def _records(file: Path) -> list[Any]:
    from wandb.proto.wandb_internal_pb2 import Record
    from wandb.sdk.internal.datastore import DataStore

    found = []
    store = DataStore()
    store.open_for_scan(str(file))
    while (data := store.scan_data()) is not None:
        found.append(Record.FromString(data))
    store.close()
    return found


def wandb_history(records: list[Any]) -> History:
    """Return each metric's values by step."""
    found: History = defaultdict(list)
    for record in records:
        if record.WhichOneof("record_type") == "history":
            row = {item.nested_key[0]: json.loads(item.value_json) for item in record.history.item}
            for name, value in row.items():
                if not name.startswith("_"):
                    found[name].append((row["_step"], value))
    return dict(found)


def wandb_items(records: list[Any], kind: str) -> dict[str, Any]:
    """Return the config or the summary as it is after the last record."""
    found: dict[str, Any] = {}
    for record in records:
        name = record.WhichOneof("record_type")
        updates = record.run.config.update if (kind, name) == ("config", "run") else ()
        updates = getattr(record, kind).update if name == kind else updates
        for item in updates:
            found[".".join([item.key] if item.key else item.nested_key)] = json.loads(item.value_json)
    return found


def in_the_table(folder: Path) -> History:
    """Return the numbers of rounds.csv, read without the package's reader."""
    import csv

    found: History = defaultdict(list)
    with (folder / "rounds.csv").open() as file:
        for row in csv.DictReader(file):
            for name, text in row.items():
                if text and name not in ("note", "selected_devices"):
                    found[name].append((int(row["round"]), float(text)))
    return dict(found)
