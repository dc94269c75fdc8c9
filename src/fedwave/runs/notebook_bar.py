"""A progress bar where a notebook shows it: one line of HTML that is replaced after every round."""

from __future__ import annotations

import sys
from html import escape
from pathlib import Path
from types import ModuleType
from typing import Any

from fedwave.errors import import_extra
from fedwave.experiments.schema import Experiment
from fedwave.runs.observers import heldout_figure
from fedwave.simulation.records import RoundRecord


def in_notebook() -> bool:
    """Return whether this process is a notebook's kernel, which shows HTML; IPython at a prompt does not."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    return getattr(shell, "kernel", None) is not None


class NotebookBar:
    """An observer that shows the round and the last figures below the cell."""

    def __init__(self) -> None:
        self._figures = ""

    def started(
        self, folder: Path, experiment: Experiment, next_round: int, warnings: tuple[str, ...]
    ) -> None:
        """Show the bar where the run begins."""
        del folder, warnings
        self._name, self._num_rounds, self._done = experiment.name, experiment.num_rounds, next_round
        self._shown = _display(self.html(), display_id=True)

    def round_done(self, record: RoundRecord) -> None:
        """Move on by one round."""
        self._done = record.round_index + 1
        if record.heldout is not None:
            self._figures = heldout_figure(record.heldout)
        self._shown.update(_html(self.html()))

    def html(self) -> str:
        """Return the bar as it stands."""
        return (
            f'<progress value="{self._done}" max="{self._num_rounds}"></progress> '
            f"{escape(self._name)}: round {self._done} of {self._num_rounds} {escape(self._figures)}"
        )


def _html(text: str) -> Any:
    return _ipython_display().HTML(text)


def _display(text: str, **options: Any) -> Any:
    return _ipython_display().display(_html(text), **options)


def _ipython_display() -> ModuleType:
    return import_extra("IPython.display", purpose="A bar in a notebook", extra="notebooks")
