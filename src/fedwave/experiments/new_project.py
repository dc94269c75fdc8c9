"""A project to start from, written into a folder: a commented experiment with its cell, or a cell alone."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from fedwave.errors import ConfigError, require_type

FILES = ("README.md", "experiment.toml", "cell.toml", "my_model.py")
CELL_FILES = ("README.md", "cell.toml", "gains.csv", "fleet.csv")


def write_project(folder: Path | str, *, cell: bool = False) -> list[Path]:
    """Write the files of a new project into a folder, which must be new or empty; return their paths.

    With ``cell`` it is a radio cell of one's own files, without training.
    """
    require_type(folder, (str, Path), name="the folder", fix="Give its path.")
    if str(folder) == "":
        raise ConfigError('the folder must have a name, got "". Write . for the current folder.')
    target = Path(folder)
    _require_free(target)
    shipped = resources.files("fedwave.experiments") / ("project_cell" if cell else "project")
    written = []
    try:
        target.mkdir(parents=True, exist_ok=True)
        for name in CELL_FILES if cell else FILES:
            # A Python file of the project is no module of the package, so it is shipped as text.
            source = shipped / (f"{name}.txt" if name.endswith(".py") else name)
            path = target / name
            with path.open("x", encoding="utf-8", newline="\n") as file:
                file.write(source.read_text(encoding="utf-8"))
            written.append(path)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ConfigError(
            f"cannot write the project to {target}: {reason}. Choose another folder."
        ) from error
    return written


def _require_free(target: Path) -> None:
    try:
        is_taken = target.exists() and (not target.is_dir() or any(target.iterdir()))
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ConfigError(f"cannot look into {target}: {reason}. Choose another folder.") from error
    if is_taken:
        what = "is not empty" if target.is_dir() else "is a file"
        raise ConfigError(f"{target} {what}. Choose a new or empty folder; nothing is written over.")
