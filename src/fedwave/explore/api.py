"""What the page may ask, by name: one method for each question, plain values in and out. Knows no web."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedwave import __version__
from fedwave.allocation import METHODS, AllocationProblem
from fedwave.allocation.access.checks import ACCESSES
from fedwave.errors import ConfigError, FedwaveError, did_you_mean
from fedwave.explore.answer import curve_of, front_of, map_of, methods_of
from fedwave.explore.export import as_problem_file, as_python, as_toml
from fedwave.explore.source import CellView, Source
from fedwave.explore.workbench import Workbench, folders_in, runs_in
from fedwave.settings import validate
from fedwave.wireless.describe.cell import describe_cell

if TYPE_CHECKING:  # cells are shown without it
    from fedwave.explore.run_view import RunView
    from fedwave.runs.compare import FinishedRun

Asked = dict[str, Any]
_MOST_PAIRS = 4_000_000  # devices times blocks
_MOST_RATIOS = 40


@dataclass(eq=False)
class Api:
    """The answers to the page's questions; ``source`` and ``run`` in them name what may be read, no paths."""

    workbench: Workbench
    runs: Sequence[RunView] = ()
    first_source: str = ""  # empty: runs come first
    num_devices: int | None = None  # at first; None: as a file says, or 100
    seed: int | None = None
    offered: Path | None = None  # a folder whose runs the page offers where none is named

    def answers(self) -> dict[str, Callable[[Asked], Any]]:
        """Return every question by its name."""
        return {
            "start": self.start,
            "defaults": self.defaults,
            "cell": self.cell,
            "methods": self.methods,
            "curve": self.curve,
            "front": self.front,
            "export": self.export,
            "runs": self.run_curves,
            "open-runs": self.open_runs,
            "run-devices": lambda asked: self._run(asked).devices(),
            "run-places": lambda asked: self._run(asked).places(),
            "run-round": lambda asked: self._run(asked).round(_whole(asked, "round")),
        }

    def start(self, asked: Asked) -> dict[str, Any]:
        """Return what there is to show."""
        del asked
        return {
            "version": __version__,
            "sources": list(self.workbench.sources),
            "first_source": self.first_source or next(iter(self.workbench.sources)),
            "first_tab": "cell" if self.first_source else "runs",
            "methods": {
                access: [name for name, method in METHODS.items() if access in method.accesses]
                for access in ACCESSES
            },
            "num_runs": len(self.runs),
            "offered": None if self.offered is None else str(self.offered),
            "num_offered": 0 if self.offered is None else len(folders_in(self.offered)),
        }

    def defaults(self, asked: Asked) -> dict[str, Any]:
        """Return the first view of a source, and what the sliders need to know about it."""
        source = self._source(asked)
        view = source.first_view(num_devices=self.num_devices, seed=self.seed)
        return {
            "source": source.name,
            "view": view.model_dump(),
            "description": source.config.description,
            "is_normalised": source.config.normalised,
            "is_redrawn": source.config.redraw == "each-round",
            "has_deadline": source.config.losses.deadline_s is not None,
            "has_max_uploads": source.config.max_uploads is not None,
            "refusals": self.workbench.refusals(source, view),
        }

    def cell(self, asked: Asked) -> dict[str, Any]:
        """Return the optimal allocation, and the map unless the page has it already."""
        source, view, problem = self._problem(asked)
        cell = self.workbench.cell(source, view)
        drawn = (view.num_devices, view.seed, view.round_index, view.contribution, view.mean_contribution)
        key = _digest([source.name, source.overrides(view), *drawn])
        return {
            "map_key": key,
            "map": None if asked.get("map_key") == key else map_of(cell, problem),
            "warnings": list(cell.warnings),
            "optimal": methods_of(problem, ["optimal"], seed=view.seed, hands_on=view.work_conserving)[
                "optimal"
            ],
        }

    def methods(self, asked: Asked) -> dict[str, Any]:
        """Return the allocations of the named methods."""
        _, view, problem = self._problem(asked)
        names = asked.get("methods")
        if names is not None and not (
            isinstance(names, list) and all(isinstance(name, str) for name in names)
        ):
            raise ConfigError(f"methods must be a list of names, got {names!r}. Leave it out for all.")
        return methods_of(problem, names, seed=view.seed, hands_on=view.work_conserving)

    def curve(self, asked: Asked) -> dict[str, Any]:
        """Return the objective over the delay."""
        return curve_of(self._problem(asked)[2])

    def front(self, asked: Asked) -> dict[str, Any]:
        """Return the optimum for some ratios of the weights."""
        ratios: Any = asked.get("ratios")
        is_list = isinstance(ratios, list) and 0 < len(ratios) <= _MOST_RATIOS
        if not is_list or not all(isinstance(one, int | float) and 0 < one < 1e9 for one in ratios):
            raise ConfigError(f"ratios must be a list of 1 to {_MOST_RATIOS} positive numbers. Try [1].")
        return front_of(self._problem(asked)[2], ratios)

    def export(self, asked: Asked) -> dict[str, str]:
        """Return the view as TOML, Python or a problem file."""
        source, view, problem = self._problem(asked)
        kinds: dict[str, Callable[[], str]] = {
            "toml": lambda: as_toml(source, view),
            "python": lambda: as_python(source, view),
            "problem": lambda: as_problem_file(problem),
        }
        kind = str(asked.get("kind"))
        if kind not in kinds:
            raise ConfigError(f'kind is not known, got "{kind}". {did_you_mean(kind, kinds)}')
        return {"text": kinds[kind]()}

    def run_curves(self, asked: Asked) -> dict[str, Any]:
        """Return the curves of all runs and their means over seeds, or only that nothing is new."""
        from fedwave.explore.seed_means import seed_means  # with the runs' tables; cells need none

        found: list[dict[str, Any]] = []
        snapshots: list[FinishedRun | None] = []
        for run in self.runs:
            try:
                snapshots.append(run.snapshot())
                found.append(run.curves(snapshots[-1]))
            except FedwaveError as error:  # one bad folder does not hide the others
                del snapshots[len(found) :]
                snapshots.append(None)
                found.append({"path": str(run.path), "error": str(error)})
        stamp = _digest(found)
        if asked.get("stamp") == stamp:
            return {"stamp": stamp, "runs": None, "means": None}
        return {"stamp": stamp, "runs": found, "means": seed_means(snapshots)}

    def open_runs(self, asked: Asked) -> dict[str, Any]:
        """Show the runs that are offered, as if their folder had been named; the page can name no other."""
        del asked
        if not self.runs and self.offered is not None:
            self.runs = runs_in(self.offered)
        return {"num_runs": len(self.runs)}

    def report(self, source: Source, view: CellView) -> dict[str, Any]:
        """Return every method's numbers of a view, as ``fedwave explore --json`` prints them."""
        problem = self.workbench.problem(source, view)
        described = describe_cell(self.workbench.cell(source, view), model_bits=view.model_bits)
        return {
            "source": source.name,
            "view": view.model_dump(),
            "facts": described.facts,
            "methods": methods_of(problem, None, seed=view.seed, hands_on=view.work_conserving),
        }

    def _source(self, asked: Asked) -> Source:
        return self.workbench.source(str(asked.get("source", "")))

    def _problem(self, asked: Asked) -> tuple[Source, CellView, AllocationProblem]:
        source = self._source(asked)
        given = asked.get("view")
        view = validate(CellView, given if isinstance(given, dict) else {})
        if view.num_devices * view.num_blocks > _MOST_PAIRS:
            raise ConfigError(
                f"devices times blocks must be at most {_MOST_PAIRS:,} here, got {view.num_devices:,} times "
                f"{view.num_blocks:,}. `fedwave allocate` takes larger problems."
            )
        return source, view, self.workbench.problem(source, view)

    def _run(self, asked: Asked) -> RunView:
        index = _whole(asked, "run")
        if not 0 <= index < len(self.runs):
            raise ConfigError(
                f"there is no run {index} here; there are {len(self.runs)}. Name it when starting."
            )
        return self.runs[index]


def _whole(asked: Asked, name: str) -> int:
    value = asked.get(name)
    if not isinstance(value, int) or isinstance(value, bool):
        raise ConfigError(f"{name} must be a whole number, got {value!r}. The page sends one.")
    return value


def _digest(content: Any) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]
