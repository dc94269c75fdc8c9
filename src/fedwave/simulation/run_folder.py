"""The folder of a run: readable by other tools, and enough to resume the run after a kill at any moment.

The order of writes makes that safe. A round's rows are appended first, then the checkpoint is replaced in one
step. So rows of every round before the checkpoint are complete, and what lies after it is cut off on resume.
"""

from __future__ import annotations

import csv
import io
import json
import math
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save

from fedwave.errors import RunError
from fedwave.learning import Parameters
from fedwave.simulation.ledger import Ledger
from fedwave.simulation.records import RoundRecord
from fedwave.simulation.simulation import State

CONFIG = "config.toml"
ENVIRONMENT = "environment.json"
ROUNDS = "rounds.csv"
DEVICES = "devices.csv"
HELDOUT = "heldout.csv"
CHECKPOINT = "checkpoint.safetensors"
MODEL = "model.safetensors"
SUMMARY = "summary.json"

# names of the tensors in a checkpoint
_PARAMETERS = "parameters."
_DEVICE_ENERGY = "ledger.device_energy_j"
_ELAPSED = "ledger.elapsed_s"


class RunFolder:
    """Reads and writes one run's files."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def create(cls, path: Path, *, config_toml: str, environment: Mapping[str, Any]) -> RunFolder:
        """Return a new run's folder; refuse one that already holds a run."""
        if (path / CONFIG).exists():
            raise RunError(
                f"{path} already holds a run. Resume it with: fedwave resume {path}, or choose another --out."
            )
        folder = cls(path)
        try:
            path.mkdir(parents=True, exist_ok=True)
            folder.write_json(ENVIRONMENT, environment)
            folder._replace(CONFIG, config_toml)
        except OSError as error:
            raise RunError(
                f"cannot write to the output folder {path}: {error.strerror}. Choose another with --out."
            ) from error
        return folder

    @classmethod
    def open(cls, path: Path) -> RunFolder:
        """Return the folder of an existing run."""
        if not (path / CONFIG).is_file():
            raise RunError(f"{path} is not a run folder: it has no {CONFIG}. Give the folder of a run.")
        return cls(path)

    def append(self, record: RoundRecord) -> None:
        """Add one round's rows to the tables."""
        k = record.round_index
        self._append_rows(ROUNDS, ["round", *record.columns], [[k, *record.columns.values()]])
        columns = record.device_columns
        values = [column.tolist() for column in columns.values()]
        self._append_rows(
            DEVICES,
            ["round", "device", *columns],
            ([k, *row] for row in zip(record.device_ids.tolist(), *values, strict=True)),
        )
        if record.heldout is not None:
            tested = record.heldout
            self._append_rows(
                HELDOUT,
                ["round", "device", "num_query", "loss", "accuracy"],
                (
                    [k, *row]
                    for row in zip(
                        tested.device_ids.tolist(),
                        tested.num_query.tolist(),
                        tested.loss.tolist(),
                        tested.accuracy.tolist(),
                        strict=True,
                    )
                ),
            )

    def save_checkpoint(self, state: State) -> None:
        """Replace the checkpoint in one step: at any moment either the old or the new one is whole."""
        tensors = {_PARAMETERS + name: value for name, value in state.parameters.items()}
        if state.ledger is not None:
            tensors[_DEVICE_ENERGY] = torch.from_numpy(state.ledger.device_energy_j)
            tensors[_ELAPSED] = torch.tensor([state.ledger.elapsed_s], dtype=torch.float64)
        self._save_tensors(CHECKPOINT, tensors, {"next_round": str(state.next_round)})

    def load_checkpoint(self) -> State | None:
        """Return the saved state, or None if the run was stopped before its first checkpoint."""
        path = self.path / CHECKPOINT
        if not path.exists():
            return None
        try:
            with safe_open(path, framework="pt") as file:
                next_round = int((file.metadata() or {})["next_round"])
                tensors = {name: file.get_tensor(name) for name in sorted(file.keys())}
        except (SafetensorError, KeyError, ValueError, OSError) as error:
            raise RunError(
                f"the checkpoint {path} cannot be read: {error}. Restore it, or start the run anew elsewhere."
            ) from error

        ledger = None
        if _DEVICE_ENERGY in tensors:
            ledger = Ledger(float(tensors[_ELAPSED][0]), tensors[_DEVICE_ENERGY].numpy())
        parameters = {
            name.removeprefix(_PARAMETERS): value
            for name, value in tensors.items()
            if name.startswith(_PARAMETERS)
        }
        return State(next_round, parameters, ledger)

    def forget_from(self, next_round: int) -> None:
        """Cut off the rows of rounds that the checkpoint does not contain."""
        for name in (ROUNDS, DEVICES, HELDOUT):
            path = self.path / name
            if not path.exists():
                continue
            with path.open(newline="", encoding="utf-8") as file:
                lines = file.readlines()
            if not lines or not lines[0].endswith("\n"):
                path.unlink()  # killed while the header was written
                continue
            kept = [line for line in lines[1:] if line.endswith("\n") and _round_of(line) < next_round]
            self._replace(name, "".join([lines[0], *kept]))

    def save_model(self, state_dict: Parameters) -> None:
        """Write the trained model in the layout of its plain torch module."""
        self._save_tensors(MODEL, state_dict, {})

    def write_json(self, name: str, content: Mapping[str, Any]) -> None:
        """Write a JSON file in one step."""
        self._replace(name, json.dumps(content, indent=2) + "\n")

    def read_json(self, name: str) -> dict[str, Any]:
        """Return the content of a JSON file of the run."""
        try:
            content: dict[str, Any] = json.loads((self.path / name).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise RunError(
                f"cannot read {self.path / name}: {error}. Give the folder of a whole run."
            ) from error
        return content

    def rounds(self) -> dict[str, Any]:
        """Return the columns of rounds.csv: numbers as float arrays (NaN where empty), text as lists."""
        path = self.path / ROUNDS
        try:
            with path.open(newline="", encoding="utf-8") as file:
                rows = list(csv.DictReader(file))
        except OSError as error:
            raise RunError(f"cannot read {path}: {error.strerror}. Give the folder of a run.") from error
        if not rows:
            raise RunError(f"{path} has no rounds yet. Let the run finish a round first.")
        return {name: _as_numbers([row[name] or "" for row in rows]) for name in rows[0]}

    def _append_rows(self, name: str, header: list[str], rows: Iterable[list[Any]]) -> None:
        path = self.path / name
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        if not path.exists():
            writer.writerow(header)
        writer.writerows([_cell(value) for value in row] for row in rows)
        with path.open("a", encoding="utf-8", newline="") as file:
            file.write(text.getvalue())
            file.flush()
            os.fsync(file.fileno())  # rows reach the disk before the checkpoint that counts on them

    def _save_tensors(self, name: str, tensors: Parameters, metadata: dict[str, str]) -> None:
        temporary = self.path / f".{name}.partial"
        content = save({key: value.cpu().contiguous() for key, value in tensors.items()}, metadata)
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())  # a power cut must not leave an empty file under the final name
        temporary.replace(self.path / name)

    def _replace(self, name: str, text: str) -> None:
        temporary = self.path / f".{name}.partial"
        temporary.write_text(text, encoding="utf-8", newline="")
        temporary.replace(self.path / name)


def _round_of(line: str) -> int:
    """Return the round that a table's row belongs to: its first column."""
    return int(line.partition(",")[0])


def _cell(value: Any) -> Any:
    """Return how a value stands in a table: floats to the last bit, nothing for what was not measured."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    return repr(value) if isinstance(value, float) else value


def _as_numbers(texts: list[str]) -> Any:
    try:
        return np.array([float(text) if text else np.nan for text in texts])
    except ValueError:
        return texts
