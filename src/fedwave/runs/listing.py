"""Which runs lie in a folder, and how far each is."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from fedwave.errors import FedwaveError, RunError
from fedwave.runs.compare import FinishedRun, read_run
from fedwave.runs.folder import CONFIG, SUMMARY, RunFolder
from fedwave.runs.tables import ROUNDS

MAX_DEPTH = 3  # of folders in folders that are looked into for runs

Status = Literal["yes", "ended early", "no"]


@dataclass(frozen=True, eq=False)
class ListedRun:
    """A run folder: the run and whether it is finished, or why it cannot be read."""

    path: Path
    run: FinishedRun | None
    is_finished: Status = "no"
    fault: str = ""


def run_folders(paths: Iterable[Path]) -> list[Path]:
    """Return the run folders among the paths and in them, each once: a folder of runs is all of its runs."""
    found: dict[Path, Path] = {}
    for path in paths:
        if not path.exists():
            raise RunError(f"there is no folder {path} here. `fedwave run digits/nufm` makes a run in runs/.")
        inside = list(_inside(path, 0)) if path.is_dir() else [path]
        if not inside:
            raise RunError(f"{path} is not a run folder, and there is none in it. Give the folder of a run.")
        for folder in inside:
            found.setdefault(folder.resolve(), folder)
    return list(found.values())


def read_runs(paths: Iterable[Path | str]) -> list[FinishedRun]:
    """Return the runs in some folders, each a run's or one that holds runs.

    In a folder of runs, one that ended before its first round is left out with a warning.
    """
    given = [Path(path) for path in paths]
    folders = run_folders(given)
    begun = [folder for folder in folders if folder in given or (folder / ROUNDS).is_file()]
    for folder in folders:
        if folder not in begun:
            logging.getLogger("fedwave").warning("%s has no round yet: it is left out.", folder)
    if not begun:
        raise RunError(f"no run in {given[0]} has a round yet. Let one finish a round first.")
    return [read_run(folder) for folder in begun]


def list_runs(folder: Path) -> list[ListedRun]:
    """Return every run in a folder; one that cannot be read says why."""
    return [_listed(path) for path in run_folders([folder])]


def is_finished(run: FinishedRun) -> Status:
    """Return whether a run came to its end: all of its rounds, or fewer by its own rule."""
    if not (run.path / SUMMARY).is_file():
        return "no"
    if RunFolder(run.path).read_json(SUMMARY).get("num_rounds") != run.num_rounds:
        return "no"  # it was gone on with since
    return "yes" if run.num_rounds == run.experiment.num_rounds else "ended early"


def _listed(path: Path) -> ListedRun:
    try:
        run = read_run(path)
        return ListedRun(path, run, is_finished(run))
    except FedwaveError as error:
        return ListedRun(path, None, fault=str(error))


def _inside(path: Path, depth: int) -> Iterator[Path]:
    if (path / CONFIG).is_file():
        yield path
    elif depth < MAX_DEPTH:
        try:
            inside = sorted((one for one in path.iterdir() if one.is_dir()), key=_by_number)
        except OSError as error:
            raise RunError(f"cannot look into {path}: {error.strerror}. Give another folder.") from error
        for one in inside:
            if not one.name.startswith("."):
                yield from _inside(one, depth + 1)


def _by_number(path: Path) -> list[tuple[int, str]]:
    """Return a key by which seed 2 stands before seed 10."""
    return [(int(part), "") if part.isdigit() else (0, part) for part in re.split(r"(\d+)", path.name)]
