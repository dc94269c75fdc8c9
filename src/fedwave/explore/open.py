"""From the words on the command line to what the page may show: presets, cell files, run folders."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from fedwave.errors import ConfigError, did_you_mean
from fedwave.explore.source import Source
from fedwave.explore.workbench import Workbench
from fedwave.wireless.load import CELL_PRESETS

if TYPE_CHECKING:  # runs need torch; cells do not
    from fedwave.explore.run_view import RunView

FIRST = "umi-3.5ghz"


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
            runs.append(_run(Path(word)))
        else:
            raise ConfigError(
                f'"{word}" is no cell file (.toml), cell preset or run folder. '
                f"{did_you_mean(word, CELL_PRESETS)}"
            )
    first = named[0] if named else ("" if runs else FIRST)
    return Workbench.of([*files, *map(Source.preset, CELL_PRESETS)]), runs, first


def _run(path: Path) -> RunView:
    try:
        from fedwave.explore.run_view import RunView
    except ImportError as error:
        raise ConfigError(
            f"Runs need torch, which cannot be imported ({error}). "
            'Install it with: pip install "fedwave[learn]"'
        ) from error
    return RunView.open(path)
