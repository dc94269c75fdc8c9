"""Runs in a notebook: their tables as frames of pandas or polars, a picture, and a summary as HTML."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, get_args

from fedwave.errors import ConfigError, did_you_mean, import_extra
from fedwave.lazy import load_name
from fedwave.runs.tables import DEVICES, HELDOUT, ROUNDS, read_table
from fedwave.shown_facts import facts_table

Library = Literal["pandas", "polars"]
# Pictures stand above runs: what draws one is found by its name, when a picture is asked for.
DRAWN_BY = ("fedwave.plots.runs", "draw_folder")


class NotebookRun:
    """What a run offers in a notebook; its folder is at ``path``, and ``_facts`` says what it came to."""

    path: Path

    @property
    def rounds(self) -> Any:
        """The table of rounds as a frame: one row per round."""
        return self.frame(ROUNDS)

    @property
    def devices(self) -> Any:
        """The table of training devices as a frame: one row per round and device."""
        return self.frame(DEVICES)

    @property
    def heldout(self) -> Any:
        """The table of held-out devices as a frame: one row per round that was evaluated, and device."""
        return self.frame(HELDOUT)

    def frame(self, table: str = ROUNDS, *, library: Library | None = None) -> Any:
        """Return a table of the run folder as a frame; see ``to_frame`` for the library."""
        return to_frame(read_table(self.path / table), library=library)

    def plot(self) -> Any:
        """Return the run's curves as a picture that a notebook shows; ``.save("run.pdf")`` writes it."""
        return load_name(*DRAWN_BY)(self.path)

    def _facts(self) -> dict[str, object]:
        raise NotImplementedError

    def _repr_html_(self) -> str:
        """Return the run as a small table. Every name in it is a user's, and stays text."""
        return facts_table(self._facts())


def to_frame(columns: dict[str, Any], *, library: Library | None = None) -> Any:
    """Return columns as a frame; by default of pandas, or of polars where only that is installed."""
    wanted = library or ("polars" if find_spec("pandas") is None and find_spec("polars") else "pandas")
    if wanted not in get_args(Library):
        raise ConfigError(f'There is no library "{wanted}" here. {did_you_mean(wanted, get_args(Library))}')
    module = import_extra(wanted, purpose="A table as a frame", extra="frames")
    return module.DataFrame({name: _plain(values) for name, values in columns.items()})


def _plain(values: Any) -> Any:
    """Return a column as both libraries take it: lists of devices as plain lists."""
    if isinstance(values, list) and values and hasattr(values[0], "tolist"):
        return [value.tolist() for value in values]
    return values
