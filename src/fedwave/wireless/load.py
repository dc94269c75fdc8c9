"""Reads a cell's settings: a preset by name or a TOML file, with overrides on top, checked."""

from __future__ import annotations

import copy
import tomllib
from importlib import resources
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from fedwave.errors import ConfigError, did_you_mean
from fedwave.wireless.channels.three_gpp import ThreeGppConfig
from fedwave.wireless.config import CellConfig

CELL_PRESETS: tuple[str, ...] = (
    "paper",
    "paper-redrawn",
    "umi-3.5ghz",
    "uma-2ghz",
    "rma-700mhz",
    "chen2020",
    "fedl2021",
)

# Two spellings of one quantity: an override in one replaces the preset's other.
_ALTERNATIVES = (("max_power_w", "max_power_dbm"), ("noise_psd_w_per_hz", "noise_psd_dbm_per_hz"))


def load_cell_config(preset_or_path: str, overrides: dict[str, Any] | None = None) -> CellConfig:
    """Return the checked settings of a preset, or of a TOML file (anything that ends in .toml)."""
    if preset_or_path.endswith(".toml"):
        path = Path(preset_or_path)
        table = anchor_paths(_read_toml(path), path.parent)  # overrides' own paths start where the user is
        return resolve_cell_table(merge(table, overrides or {}))
    return resolve_cell_table({"preset": preset_or_path, **(overrides or {})})


def resolve_cell_table(table: dict[str, Any], *, base_dir: Path | None = None) -> CellConfig:
    """Return the checked settings of a ``[cell]`` table; its optional ``preset`` is laid underneath.

    Relative file names are taken from ``base_dir``, the folder of the file the table came from.
    """
    own = dict(table)
    preset = own.pop("preset", None)
    if preset is not None:
        own = merge(preset_table(str(preset)), own)
    if base_dir is not None:
        own = anchor_paths(own, base_dir)
    try:
        return CellConfig.model_validate(own)
    except ValidationError as error:
        raise ConfigError(_one_line(error)) from None


def preset_table(name: str) -> dict[str, Any]:
    """Return the settings of a named preset, unchecked."""
    if name not in CELL_PRESETS:
        raise ConfigError(
            f'There is no cell preset "{name}". {did_you_mean(name, CELL_PRESETS)} '
            "For a file of your own, give its name with .toml."
        )
    text = resources.files("fedwave.wireless").joinpath("presets", f"{name}.toml").read_text(encoding="utf-8")
    table = tomllib.loads(text)
    base = table.pop("preset", None)
    return table if base is None else merge(preset_table(base), table)


def merge(base: dict[str, Any], overrides: dict[str, Any]) -> dict[str, Any]:
    """Return ``base`` with ``overrides`` on top, table by table; one of another ``kind`` replaces the old."""
    merged = copy.deepcopy(base)
    for key, value in overrides.items():
        for pair in _ALTERNATIVES:
            if key in pair:
                for other in pair:
                    if other != key and other not in overrides:
                        merged.pop(other, None)
        old = merged.get(key)
        same_kind = (
            isinstance(old, dict)
            and isinstance(value, dict)
            and value.get("kind", old.get("kind")) == old.get("kind")
        )
        merged[key] = merge(old, value) if same_kind and isinstance(old, dict) else copy.deepcopy(value)
    # What only the old scenario asked about goes with it.
    for option in ThreeGppConfig.foreign_options(overrides.get("scenario")) - set(overrides):
        merged.pop(option, None)
    return merged


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"Cannot read the cell file {path}: {error.strerror}. Check the path.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"The cell file {path} is not valid TOML: {error}. Correct that line.") from error


def anchor_paths(table: dict[str, Any], base_dir: Path) -> dict[str, Any]:
    """Return the table with every relative ``path`` taken from ``base_dir``."""
    anchored: dict[str, Any] = {}
    for key, value in table.items():
        if isinstance(value, dict):
            anchored[key] = anchor_paths(value, base_dir)
        elif key == "path" and isinstance(value, str):
            anchored[key] = str(base_dir / value)
        else:
            anchored[key] = value
    return anchored


def _one_line(error: ValidationError) -> str:
    """Return the first problem as one line: which key, what was got, how to fix it."""
    # A misspelt key is also missed under its right name: name the misspelling.
    problem = min(error.errors(), key=lambda found: found["type"] != "extra_forbidden")
    # Unions add their branch's tag to the place; only real keys are shown.
    place = [str(part) for part in problem["loc"]]
    keys, section = _walk(place, ends_in_unknown_key=problem["type"] == "extra_forbidden")
    name = "cell." + ".".join(keys) if keys else "cell"
    if problem["type"] == "extra_forbidden":
        known = [] if section is None else list(section.model_fields)
        return f'"{name}" is not a setting. {did_you_mean(keys[-1], known)}'
    if problem["type"] == "missing":
        return f'{name} is missing. Set it, or start from a preset such as preset = "umi-3.5ghz".'
    if problem["type"].startswith("union_tag"):
        expected = str(problem.get("ctx", {}).get("expected_tags", "")).replace("'", '"')
        if problem["type"] == "union_tag_not_found":
            return f"{name} needs a kind. Choose one of: {expected}."
        return f'{name}.kind "{problem["ctx"]["tag"]}" is unknown. Choose one of: {expected}.'
    if problem["type"] == "value_error":
        return f"{name}: {problem['ctx']['error']}."
    message = problem["msg"].removeprefix("Input should be ")
    hint = _hint(keys[-1] if keys else "", problem["input"])
    return f"{name} must be {message}, got {problem['input']!r}.{hint}"


def _hint(key: str, given: object) -> str:
    if key == "num_blocks":
        return " Without a radio block nobody can upload."
    if key == "carrier_frequency_hz" and isinstance(given, int | float) and 0 < given <= 100:
        return f" If that is GHz, write {given:g}e9."
    if key.startswith("noise_psd") and isinstance(given, int | float) and given < 0:
        return " If that is dBm/Hz, use noise_psd_dbm_per_hz."
    if key.endswith("_w") and isinstance(given, int | float) and given < 0:
        return " If that is dBm, convert it: watts are 1e-3 * 10^(dBm/10)."
    return ""


def _walk(place: list[str], *, ends_in_unknown_key: bool) -> tuple[list[str], type[BaseModel] | None]:
    """Return the keys of a place without the tags pydantic adds for unions, and the last key's section."""
    sections: list[type[BaseModel]] = [CellConfig]
    keys: list[str] = []
    holder: type[BaseModel] | None = None
    for part_index, part in enumerate(place):
        tagged = [section for section in sections if part in _tags(section)]
        if tagged:
            sections = tagged
            continue
        with_field = [section for section in sections if part in section.model_fields]
        is_last = part_index == len(place) - 1
        if with_field:
            holder = with_field[0]
            sections = _sections_in(holder.model_fields[part].annotation)
            keys.append(part)
        elif is_last and sections and ends_in_unknown_key:
            holder = sections[0]
            keys.append(part)
        # What is left is the tag "number".
    return keys, holder


def _tags(section: type[BaseModel]) -> set[str]:
    kind = section.model_fields.get("kind")
    return {"range"} if kind is None else {str(kind.default)}


def _sections_in(annotation: Any) -> list[type[BaseModel]]:
    """Return the models an annotation may stand for."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [section for inner in get_args(annotation) for section in _sections_in(inner)]
