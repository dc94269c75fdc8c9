"""What is kept of a finished run: a few columns by round and where they come from, in one line of JSON."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from fedwave.errors import RunError
from fedwave.units import FloatArray

# Of the columns of rounds.csv, those that a figure or a claim needs.
KEPT = (
    "train_loss",
    "heldout_loss",
    "heldout_accuracy",
    "heldout_accuracy_pooled",
    "num_received",
    "gradient_norm_mean",
    "share_below_turning_point",
    "contribution",
    "objective",
    "objective_gap",
    "compute_energy_j",
    "upload_energy_j",
    "energy_j",
    "delay_s",
    "wall_time_s",
)


@dataclass(frozen=True, eq=False)
class Result:
    """One finished run. ``columns`` has a value for each round, NaN where nothing was measured."""

    key: str
    command: str  # that makes this run alone
    made_with: Mapping[str, Any]  # versions and processor
    num_rounds: int
    seconds: float  # that the run took here
    num_remembered: int  # rounds that were known from another run
    columns: Mapping[str, list[float]]
    probes: Mapping[str, Mapping[str, Mapping[str, float]]] = field(default_factory=dict)  # by round and name

    def column(self, name: str) -> FloatArray:
        """Return a column; all NaN if the run has none of that name."""
        values = self.columns.get(name)
        return np.full(self.num_rounds, math.nan) if values is None else np.array(values, dtype=np.float64)

    def mean(self, name: str) -> float:
        """Return the mean over rounds; NaN where nothing was measured."""
        values = self.column(name)
        values = values[np.isfinite(values)]
        return float(values.mean()) if values.size else math.nan

    def after(self, name: str, rounds: int) -> float:
        """Return the value after so many rounds; NaN if the run is shorter."""
        return float(self.column(name)[rounds - 1]) if 0 < rounds <= self.num_rounds else math.nan

    def first(self, num_rounds: int) -> Result:
        """Return the run as if it had ended after so many rounds."""
        if num_rounds == self.num_rounds:
            return self
        columns = {name: values[:num_rounds] for name, values in self.columns.items()}
        return replace(self, num_rounds=num_rounds, columns=columns, probes={})


class Results:
    """The finished runs, by key: each in a file of its own until all are gathered in one, a line each.

    A file is whole or absent, as it is written beside and renamed: processes may add while others read.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.gathered = folder.with_name(f"{folder.name}.jsonl")

    def find(self, key: str, *, num_rounds: int, is_probed: bool = False) -> Result | None:
        """Return the finished run, cut to so many rounds; None if there is none that long."""
        result = self._alone(self._path(key)) or self._lines.get(key)
        if result is None or result.num_rounds < num_rounds:
            return None
        if is_probed and str(num_rounds) not in result.probes:
            return None
        return result.first(num_rounds)

    def add(self, result: Result) -> None:
        """Keep a finished run."""
        self.folder.mkdir(parents=True, exist_ok=True)
        _write(self._path(result.key), [result])

    def gather(self) -> None:
        """Move all runs into the one file, which can be shared; a run made anew replaces the former."""
        alone = sorted(self.folder.glob("*.json"))
        if alone:
            found = (self._alone(path) for path in alone)
            self._lines.update((result.key, result) for result in found if result is not None)
            _write(self.gathered, [self._lines[key] for key in sorted(self._lines)])
            for path in alone:
                path.unlink()

    @cached_property
    def _lines(self) -> dict[str, Result]:
        try:
            lines = self.gathered.read_text(encoding="utf-8").splitlines()
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            raise RunError(f"cannot read the finished runs {self.gathered}: {error}. Restore it.") from error
        results = [_read(line, f"{self.gathered}, line {at}") for at, line in enumerate(lines, start=1)]
        return {result.key: result for result in results}

    def _alone(self, path: Path) -> Result | None:
        try:
            text = path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise RunError(
                f"cannot read the finished run {path}: {error}. Delete it to run it anew."
            ) from error
        return _read(text, str(path))

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}.json"


def _read(text: str, where: str) -> Result:
    try:
        content = json.loads(text)
        return Result(**{**content, "columns": _numbers(content["columns"])})
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise RunError(f"cannot read the finished run {where}: {error}. Delete it to run it anew.") from error


def _write(path: Path, results: Sequence[Result]) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        with temporary.open("w", encoding="utf-8") as file:
            for result in results:
                file.write(json.dumps(_plain(asdict(result)), allow_nan=False, separators=(",", ":")) + "\n")
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        with suppress(FileNotFoundError):
            temporary.unlink()


def _plain(value: Any) -> Any:
    """Return a value that JSON can hold: nothing where a number is missing."""
    if isinstance(value, dict):
        return {name: _plain(own) for name, own in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(own) for own in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _numbers(columns: Mapping[str, list[Any]]) -> dict[str, list[float]]:
    return {
        name: [math.nan if value is None else float(value) for value in own] for name, own in columns.items()
    }
