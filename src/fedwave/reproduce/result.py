"""What is kept of a finished run: its figures, a few curves and where they come from, in one line of JSON."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from fedwave.errors import RunError
from fedwave.units import FloatArray

OWN_TEST = "one step"  # the probe that repeats the run's own test
CURVES = ("heldout_loss", "energy_j", "delay_s")  # columns that are kept round by round, where a run has them


@dataclass(frozen=True, eq=False)
class Result:
    """One finished run."""

    key: str
    command: str  # that makes this run alone
    made_with: Mapping[str, Any]  # versions and processor
    num_rounds: int
    seconds: float  # that the run took here
    num_remembered: int  # rounds that were known from another run
    figures: Mapping[str, float]  # of the whole run, NaN where nothing was measured
    curves: Mapping[str, list[float]]  # a value for each round, likewise
    probes: Mapping[str, Mapping[str, Mapping[str, float]]] = field(default_factory=dict)  # by round and name

    def curve(self, name: str) -> FloatArray:
        """Return a curve; all NaN if the run has none of that name."""
        values = self.curves.get(name)
        return np.full(self.num_rounds, math.nan) if values is None else np.array(values, dtype=np.float64)

    def accuracy_after(self, rounds: int) -> float:
        """Return the accuracy at the end or where the run was probed; NaN elsewhere: it is not kept."""
        if rounds == self.num_rounds:
            return self.figures["accuracy"]
        probed = self.probes.get(str(rounds))
        return math.nan if probed is None else probed[OWN_TEST]["accuracy"]


class Results:
    """The finished runs, by key: each in a file of its own until all are gathered in one, a line each.

    A file is whole or absent, as it is written beside and renamed: processes may add while others read.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.gathered = folder.with_name(f"{folder.name}.jsonl")

    def find(self, key: str, *, is_probed: bool = False) -> Result | None:
        """Return the finished run, if there is one, and if probes are wanted one with probes."""
        result = self._alone(self._path(key)) or self._lines.get(key)
        return None if result is None or (is_probed and not result.probes) else result

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
        curves = {name: [_number(one) for one in own] for name, own in content["curves"].items()}
        figures = {name: _number(one) for name, one in content["figures"].items()}
        return Result(**{**content, "figures": figures, "curves": curves})
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


def _number(value: Any) -> float:
    return math.nan if value is None else float(value)
