"""Reads a cell's settings: a preset by name or a TOML file, with overrides on top, checked."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fedwave.errors import ConfigError, did_you_mean, require_type
from fedwave.settings import anchor_paths, merge, read_toml, validate
from fedwave.toml_text import Settings, toml_from_text
from fedwave.wireless.cell import Cell
from fedwave.wireless.settings.config import CellConfig
from fedwave.wireless.settings.num_devices import num_devices_of
from fedwave.wireless.settings.presets import CELL_PRESETS, preset_text


def load_cell(
    preset_or_path: str | Path,
    *,
    num_devices: int | None = None,
    seed: int = 0,
    overrides: Mapping[str, Any] | None = None,
) -> Cell:
    """Return a cell with its fleet and places drawn, e.g. ``load_cell("umi-3.5ghz", num_devices=100)``.

    Without ``num_devices`` it has as many devices as its files, or else 100.
    """
    config = load_cell_config(preset_or_path, overrides)
    return Cell.build(config, num_devices=num_devices_of(config, asked=num_devices), seed=seed)


def load_cell_config(preset_or_path: str | Path, overrides: Mapping[str, Any] | None = None) -> CellConfig:
    """Return the checked settings of a preset, or of a TOML file (anything that ends in .toml)."""
    require_type(
        preset_or_path, (str, Path), name="the cell", fix="Give the name of a preset or a .toml file."
    )
    source = str(preset_or_path)
    table = _file_table(Path(source)) if is_cell_file(source) else {"preset": source}
    # An override's own paths start where the user is.
    return validate(CellConfig, with_preset(merge(table, dict(overrides or {}), CellConfig)), root="cell")


def with_preset(table: Settings, schema: type[CellConfig] = CellConfig) -> Settings:
    """Return a cell's table with the preset that it names laid underneath, and the name taken out."""
    own = dict(table)
    preset = own.pop("preset", None)
    return own if preset is None else merge(preset_table(preset), own, schema)


def is_cell_file(name: object) -> bool:
    """Return whether the name of a preset is that of a file: it ends in .toml."""
    return isinstance(name, str) and name.endswith(".toml")


def preset_table(name: object) -> Settings:
    """Return the settings of a named preset or of a cell file, unchecked."""
    if is_cell_file(name):
        return with_preset(_file_table(Path(str(name))))
    if not isinstance(name, str) or name not in CELL_PRESETS:
        raise ConfigError(
            f'there is no cell preset "{name}". {did_you_mean(str(name), CELL_PRESETS)} '
            "For a file of your own, give its name with .toml."
        )
    return with_preset(toml_from_text(preset_text(name), name=name))


def _file_table(path: Path) -> Settings:
    """Return the keys of a cell file, which may start from a named preset, but not from another file."""
    advice = "Check the path; `fedwave cell` lists the presets."
    table = anchor_paths(read_toml(path, what="cell file", advice=advice), path.parent)
    if is_cell_file(table.get("preset")):
        raise ConfigError(
            f'{path}: a cell file starts from a named preset, got the file "{table["preset"]}". '
            f"{did_you_mean('', CELL_PRESETS)}"
        )
    return table
