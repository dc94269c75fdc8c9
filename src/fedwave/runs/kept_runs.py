"""What is kept of a run that needs no folder: figures, a few curves, their origin, in one line of JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from fedwave.errors import RunError, shown
from fedwave.files import read_text, replace_file
from fedwave.json_values import json_value
from fedwave.runs.lock import locked
from fedwave.units import FloatArray

READINGS = "probes"  # what the test readings are called in a line
DIGITS = 7  # of the values of a curve: float32 has no more, and a line stays short
_ANEW = "Delete it to run it anew."

T = TypeVar("T")


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

    @property
    def processor(self) -> str:
        """The kind of processor that made it; "" where that was not said."""
        return str(self.made_with.get("processor") or "")

    def curve(self, name: str) -> FloatArray:
        """Return a curve; all NaN if the run has none of that name."""
        values = self.curves.get(name)
        return np.full(self.num_rounds, math.nan) if values is None else np.array(values, dtype=np.float64)


class KeptRuns:
    """The finished runs, by key: each in a file of its own until all are gathered in one, a line each.

    A file is whole or absent, as it is written beside and renamed: processes may add while others read. The
    one file keeps a run of each kind of processor, as they round otherwise: what is compared with each other
    should come from one.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.gathered = folder.with_name(f"{folder.name}.jsonl")
        self._lines: dict[str, list[KeptRun]] = {}
        self._version_read: tuple[int, ...] | None = None  # of the one file

    def find(
        self,
        key: str,
        *,
        with_readings: bool = False,
        curves: Iterable[str] = (),
        processor: str | None = None,
    ) -> KeptRun | None:
        """Return the finished run, if there is one that has the curves and, if wanted, the test readings.

        ``processor`` None is of any kind; one that is not gathered yet comes first.
        """
        wanted = set(curves)
        for run in self.every(key):
            if processor is not None and run.processor != processor:
                continue
            if wanted <= set(run.curves) and (run.test_readings or not with_readings):
                return run
        return None

    def every(self, key: str) -> list[KeptRun]:
        """Return the finished runs of a key, at most one of each kind of processor in the one file."""
        alone = self._alone(self.folder / f"{key}.json")
        return [*([alone] if alone is not None else []), *self._in_gathered(key)]

    def add(self, run: KeptRun) -> None:
        """Keep a finished run."""
        self.folder.mkdir(parents=True, exist_ok=True)
        line = _line(run)
        with locked(self.folder, waits=True):  # who gathers deletes what was there when it began
            replace_file(self.folder / f"{run.key}.json", [line])

    def gather(self) -> None:
        """Move all runs into the one file, which can be shared; a run made anew replaces the former.

        Others may gather here too: one after another, and each adds to what it finds.
        """
        if not any(self.folder.glob("*.json")):
            return
        with locked(self.folder, waits=True):
            alone = sorted(self.folder.glob("*.json"))
            found = [run for path in alone if (run := self._alone(path)) is not None]
            runs = {(run.key, run.processor): run for run in (*self._read_gathered(), *found)}
            replace_file(self.gathered, (_line(runs[key]) for key in sorted(runs)))
            for path in alone:
                path.unlink()

    def _in_gathered(self, key: str) -> list[KeptRun]:
        """Return the runs of a key in the one file, which is read again only where it has changed."""
        if (version := self._version()) != self._version_read:
            self._lines = {}
            for run in self._read_gathered():
                self._lines.setdefault(run.key, []).append(run)
            self._version_read = version
        return self._lines.get(key, [])

    def _version(self) -> tuple[int, ...]:
        try:
            found = self.gathered.stat()
        except OSError:  # reading it says why
            return ()
        return found.st_ino, found.st_size, found.st_mtime_ns

    def _read_gathered(self) -> list[KeptRun]:
        """Return the runs of the one file; of two of one key and processor, the later one."""
        try:
            lines = read_text(self.gathered).splitlines()
        except FileNotFoundError:
            return []
        except (OSError, ValueError) as error:
            raise RunError(f"cannot read the finished runs {self.gathered}: {error}. Restore it.") from error
        runs = [_read(line, f"{self.gathered}, line {at}") for at, line in enumerate(lines, start=1)]
        return list({(run.key, run.processor): run for run in runs}.values())

    def _alone(self, path: Path) -> KeptRun | None:
        try:
            text = read_text(path)
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise RunError(f"cannot read the finished run {path}: {error}. {_ANEW}") from error
        return _read(text, str(path))


def _read(text: str, where: str) -> KeptRun:
    try:
        content = json.loads(text)
        curves = {name: [_number(one) for one in own] for name, own in content["curves"].items()}
        run = KeptRun(
            key=_of_type(content["key"], str),
            command=_of_type(content["command"], str),
            made_with=_of_type(content["made_with"], dict),
            num_rounds=_of_type(content["num_rounds"], int),
            seconds=_number(content["seconds"]),
            num_remembered=_of_type(content["num_remembered"], int),
            figures={name: _number(one) for name, one in content["figures"].items()},
            curves=curves,
            test_readings={
                str(int(after)): {
                    name: {figure: _number(one) for figure, one in own.items()}
                    for name, own in judgements.items()
                }
                for after, judgements in content.get(READINGS, {}).items()
            },
        )
        if any(len(curve) != run.num_rounds for curve in curves.values()):
            raise ValueError(f"a curve does not have {run.num_rounds} values, one for each round")
        return run
    except KeyError as error:
        raise RunError(f"cannot read the finished run {where}: it has no {error}. {_ANEW}") from error
    except (ValueError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise RunError(f"cannot read the finished run {where}: {error}. {_ANEW}") from error


def _line(run: KeptRun) -> bytes:
    content = json_value(asdict(run))
    content[READINGS] = content.pop("test_readings")
    return (json.dumps(content, allow_nan=False, separators=(",", ":")) + "\n").encode()


def curve_of(values: FloatArray) -> list[float]:
    """Return the values of a curve as they are kept: with 7 significant digits."""
    return [float(f"{value:.{DIGITS}g}") for value in values.tolist()]


def _number(value: Any) -> float:
    if value is None:
        return math.nan
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{shown(value)} is no number")
    return float(value)


def _of_type(value: Any, wanted: type[T]) -> T:
    if not isinstance(value, wanted) or isinstance(value, bool):
        raise TypeError(f"{shown(value)} is no {wanted.__name__}")
    return value
