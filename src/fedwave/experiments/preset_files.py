"""The shipped presets as files: their names and texts, nothing checked."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import resources
from importlib.resources.abc import Traversable

from fedwave.errors import ConfigError, did_you_mean


def preset_names() -> list[str]:
    """Return the names of the shipped presets, e.g. ``paper/nufm``."""
    root = resources.files("fedwave.experiments") / "presets"
    return sorted(name for name, _ in _walk(root, ""))


def preset_text(name: str) -> str:
    """Return the TOML text of a preset."""
    for known, file in _walk(resources.files("fedwave.experiments") / "presets", ""):
        if known == name:
            return file.read_text(encoding="utf-8")
    raise ConfigError(f'"{name}" is neither a preset nor a .toml file. {did_you_mean(name, preset_names())}')


def _walk(folder: Traversable, prefix: str) -> Iterable[tuple[str, Traversable]]:
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _walk(entry, f"{prefix}{entry.name}/")
        elif entry.name.endswith(".toml"):
            yield prefix + entry.name.removesuffix(".toml"), entry
