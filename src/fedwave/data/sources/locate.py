"""Where dataset files are looked for, and what to say when they are nowhere."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from fedwave.errors import ConfigError, DataError
from fedwave.user_cache import cache_root, private_folder

DATA_DIR_VARIABLE = "FEDWAVE_DATA"
# The folder of Debian's package dataset-fashion-mnist (checked with `dpkg -c`).
DEBIAN_DATASETS_DIR = Path("/usr/share/datasets")


def cache_dir() -> Path:
    """Return the per-user folder that ``fedwave datasets download`` fills."""
    return cache_root() / "fedwave"


def require_own(folder: Path, *, is_made: bool = False) -> None:
    """Raise an ``OSError`` unless this folder of the cache is the user's alone; make it, if so wished."""
    if not hasattr(os, "geteuid"):  # Windows keeps others out of the user's profile by itself
        if is_made:
            folder.mkdir(parents=True, exist_ok=True)
        return
    root = cache_dir().parent
    with private_folder(root, *folder.relative_to(root).parts, is_made=is_made):
        pass


def search_dirs(data_dir: Path | None) -> list[Path]:
    """Return the existing folders to look in, in order: argument, FEDWAVE_DATA, user cache, Debian's."""
    candidates: list[Path] = []
    for origin, value in (
        ("--data-dir", data_dir),
        (DATA_DIR_VARIABLE, os.environ.get(DATA_DIR_VARIABLE) or None),
    ):
        if value is None:
            continue
        folder = Path(value).expanduser()
        if not folder.is_dir():
            raise ConfigError(
                f"{origin} must name an existing folder, got {folder}. Create it or correct it."
            )
        candidates.append(folder)
    candidates.extend(_cache())
    candidates.append(DEBIAN_DATASETS_DIR)
    return [folder for folder in dict.fromkeys(candidates) if folder.is_dir()]


def find_folder(
    data_dir: Path | None, subfolders: Sequence[str], holds_data: Callable[[Path], bool]
) -> Path | None:
    """Return the first folder that holds the data: a search folder's ``subfolders``, or itself."""
    for folder in search_dirs(data_dir):
        for candidate in (*(folder / name for name in subfolders), folder):
            try:
                is_found = candidate.is_dir() and holds_data(candidate)
            except PermissionError as error:
                raise DataError(f"{candidate} cannot be read. Check its permissions.") from error
            if is_found:
                if folder in _cache():
                    _refuse_what_others_can_change(candidate)
                return candidate
    return None


def _cache() -> list[Path]:
    """Return the user cache, if there can be one."""
    try:
        return [cache_dir()]
    except FileNotFoundError:  # there is no home folder
        return []


def _refuse_what_others_can_change(folder: Path) -> None:
    try:
        require_own(folder)
    except OSError as error:
        raise DataError(
            f"the data in {folder} is not used ({error}). Mend the folder, or download the data again with "
            "--data-dir to one of your own."
        ) from error


def not_found(
    name: str, *, files: str, data_dir: Path | None, debian_package: str | None = None
) -> DataError:
    """Return the error of a missing dataset; it names the three ways to provide it."""
    searched = ", ".join(str(folder) for folder in search_dirs(data_dir)) or "no existing folder"
    if debian_package is None:
        by_hand = (
            f"(2) pass --data-dir DIR where DIR holds {files}; (3) set {DATA_DIR_VARIABLE}=DIR to that folder"
        )
    else:
        by_hand = (
            f"(2) pass --data-dir DIR or set {DATA_DIR_VARIABLE}=DIR where DIR holds {files}; "
            f"(3) on Debian or Ubuntu: apt install {debian_package}"
        )
    return DataError(
        f"Dataset {name} not found in: {searched}. Three ways provide it: "
        f"(1) fedwave datasets download {name}; {by_hand}."
    )
