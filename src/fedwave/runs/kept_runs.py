"""What is kept of a run that needs no folder: figures, a few curves, their origin, in one line of JSON."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from fedwave.errors import RunError
from fedwave.json_values import json_value
from fedwave.runs.lock import locked
from fedwave.units import FloatArray

READINGS = "probes"  # what the test readings are called in a line
DIGITS = 7  # of the values of a curve: float32 has no more, and a line stays short


@dataclass(frozen=True, eq=False)
class KeptRun:
    """One finished run. Its figures are exact, its curves have 7 significant digits, to stay small."""

    key: str  # of ``run_key``
    command: str  # that makes this run alone
    made_with: Mapping[str, Any]  # versions and processor
    num_rounds: int
    seconds: float  # that the run took here
    num_remembered: int  # rounds that were known from another run
    figures: Mapping[str, float]  # of the whole run, NaN where nothing was measured
    curves: Mapping[str, list[float]]  # a value for each round, likewise
    test_readings: Mapping[str, Mapping[str, Mapping[str, float]]] = field(default_factory=dict)  # by round

    def curve(self, name: str) -> FloatArray:
        """Return a curve; all NaN if the run has none of that name."""
        values = self.curves.get(name)
        return np.full(self.num_rounds, math.nan) if values is None else np.array(values, dtype=np.float64)


class KeptRuns:
    """The finished runs, by key: each in a file of its own until all are gathered in one, a line each.

    A file is whole or absent, as it is written beside and renamed: processes may add while others read.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.gathered = folder.with_name(f"{folder.name}.jsonl")
        self._lines: dict[str, KeptRun] | None = None

    def find(self, key: str, *, with_readings: bool = False, curves: Iterable[str] = ()) -> KeptRun | None:
        """Return the finished run, if there is one that has the curves and, if wanted, the test readings."""
        if self._lines is None:
            self._lines = self._read_gathered()
        found = self._alone(self.folder / f"{key}.json") or self._lines.get(key)
        if found is None or (with_readings and not found.test_readings):
            return None
        return found if all(name in found.curves for name in curves) else None

    def add(self, run: KeptRun) -> None:
        """Keep a finished run."""
        self.folder.mkdir(parents=True, exist_ok=True)
        _write(self.folder / f"{run.key}.json", [run])

    def gather(self) -> None:
        """Move all runs into the one file, which can be shared; a run made anew replaces the former.

        Others may gather here too: one after another, and each adds to what it finds.
        """
        if not any(self.folder.glob("*.json")):
            return
        with locked(self.folder, waits=True):
            alone = sorted(self.folder.glob("*.json"))
            found = {run.key: run for path in alone if (run := self._alone(path)) is not None}
            self._lines = lines = {**self._read_gathered(), **found}
            _write(self.gathered, [lines[key] for key in sorted(lines)])
            for path in alone:
                path.unlink()

    def _read_gathered(self) -> dict[str, KeptRun]:
        try:
            lines = self.gathered.read_text(encoding="utf-8").splitlines()
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            raise RunError(f"cannot read the finished runs {self.gathered}: {error}. Restore it.") from error
        runs = [_read(line, f"{self.gathered}, line {at}") for at, line in enumerate(lines, start=1)]
        return {run.key: run for run in runs}

    def _alone(self, path: Path) -> KeptRun | None:
        try:
            text = path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise RunError(
                f"cannot read the finished run {path}: {error}. Delete it to run it anew."
            ) from error
        return _read(text, str(path))


def _read(text: str, where: str) -> KeptRun:
    try:
        content = json.loads(text)
        readings = content.pop(READINGS, {})
        curves = {name: [_number(one) for one in own] for name, own in content["curves"].items()}
        figures = {name: _number(one) for name, one in content["figures"].items()}
        return KeptRun(**{**content, "figures": figures, "curves": curves, "test_readings": readings})
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise RunError(f"cannot read the finished run {where}: {error}. Delete it to run it anew.") from error


def _write(path: Path, runs: Sequence[KeptRun]) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        with temporary.open("w", encoding="utf-8") as file:
            for run in runs:
                content = json_value(asdict(run))
                content[READINGS] = content.pop("test_readings")
                file.write(json.dumps(content, allow_nan=False, separators=(",", ":")) + "\n")
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        with suppress(FileNotFoundError):
            temporary.unlink()


def curve_of(values: FloatArray) -> list[float]:
    """Return the values of a curve as they are kept: with 7 significant digits."""
    return [float(f"{value:.{DIGITS}g}") for value in values.tolist()]


def _number(value: Any) -> float:
    return math.nan if value is None else float(value)
