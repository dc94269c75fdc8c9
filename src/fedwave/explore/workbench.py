"""What may be shown, and the allocation problem behind it; the cell is kept while only weights move."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from fedwave.allocation import AllocationProblem
from fedwave.allocation.access.checks import ACCESSES
from fedwave.errors import ConfigError, FedwaveError, RunError, did_you_mean
from fedwave.explore.source import CellView, Source
from fedwave.server import problem_of_cell
from fedwave.server.draws import draw_contribution
from fedwave.units import FloatArray
from fedwave.wireless.cell import Cell
from fedwave.wireless.settings.presets import CELL_PRESETS

if TYPE_CHECKING:  # cells are shown without it
    from fedwave.explore.run_view import RunView

FIRST = "umi-3.5ghz"  # where nothing is named
_KEPT_CELLS = 5  # one of each access, and the one before; each may hold a gain for every device and block


def contributions(view: CellView) -> FloatArray:
    """Return what each update is worth: equal, or drawn with the view's mean."""
    return draw_contribution(
        view.contribution, mean=view.mean_contribution, num_devices=view.num_devices, seed=view.seed
    )


@dataclass(eq=False)
class Workbench:
    """The sources that may be shown, and the cells that were built last."""

    sources: dict[str, Source]
    _cells: dict[str, Cell] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    @classmethod
    def of(cls, sources: Iterable[Source]) -> Workbench:
        """Return a workbench for these sources."""
        return cls({source.name: source for source in sources})

    def source(self, name: str) -> Source:
        """Return a source by its name."""
        if name not in self.sources:
            raise ConfigError(f'there is no cell "{name}" here. {did_you_mean(name, self.sources)}')
        return self.sources[name]

    def cell(self, source: Source, view: CellView) -> Cell:
        """Return the view's cell, the one that was built before if nothing in it has changed."""
        overrides = source.overrides(view)
        key = json.dumps([source.name, overrides, view.num_devices, view.seed], sort_keys=True)
        with self._lock:  # two requests for one cell build it once
            if key not in self._cells:
                while len(self._cells) >= _KEPT_CELLS:
                    del self._cells[next(iter(self._cells))]
                self._cells[key] = source.build(overrides, num_devices=view.num_devices, seed=view.seed)
                self._cells[key].draw(view.round_index)
            return self._cells[key]

    def problem(self, source: Source, view: CellView) -> AllocationProblem:
        """Return problem (P) of the view's round."""
        return self._problem(self.cell(source, view), view)

    def refusals(self, source: Source, view: CellView) -> dict[str, str]:
        """Return, for every access, why the view's cell cannot be shared so; "" where it can."""
        cell, found = self.cell(source, view), {}
        for access in ACCESSES:
            try:
                self._problem(cell, view, access=access)
                found[access] = ""
            except FedwaveError as error:
                found[access] = str(error)
        return found

    def _problem(self, cell: Cell, view: CellView, **link: Any) -> AllocationProblem:
        return problem_of_cell(
            cell,
            contributions(view),
            round_index=view.round_index,
            num_samples=view.num_samples,
            model_bits=view.model_bits,
            energy_weight=view.energy_weight,
            delay_weight=view.delay_weight,
            **link,
        )


def open_all(words: Iterable[str]) -> tuple[Workbench, list[RunView], str]:
    """Return the cells, the runs, and the name of the cell to show first ("" if only runs are named)."""
    files, runs, named = [], [], []
    words = list(words)
    for word in words:
        if word.endswith(".toml"):
            files.append(Source.file(Path(word)))
            named.append(files[-1].name)
        elif word in CELL_PRESETS and not (Path(word) / "config.toml").is_file():
            named.append(word)
        elif Path(word).is_dir():
            runs += runs_in(Path(word))
        else:
            raise ConfigError(
                f'"{word}" is no cell file (.toml), cell preset or run folder. '
                f"{did_you_mean(word, CELL_PRESETS)}"
            )
    first = named[0] if named else ("" if runs else FIRST)
    return Workbench.of([*files, *map(Source.preset, CELL_PRESETS)]), runs, first


def runs_in(path: Path) -> list[RunView]:
    """Return the run in a folder, or all that it holds."""
    from fedwave.explore.run_view import RunView  # cells are shown without it
    from fedwave.runs.listing import run_folders

    return [RunView.open(folder) for folder in run_folders([path])]


def folders_in(path: Path) -> list[Path]:
    """Return the run folders in a folder; none where it does not exist or holds none."""
    from fedwave.runs.listing import run_folders

    try:
        return run_folders([path]) if path.is_dir() else []
    except RunError:
        return []
