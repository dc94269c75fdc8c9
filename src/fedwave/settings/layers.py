"""Layers of settings: a preset or file below, what extends it above, the command line on top.

A later layer beats an earlier one, key by key. What a later choice makes meaningless goes with the choice:
the watts of a preset when dBm are given, the options of a channel when another kind of channel is asked for.
"""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel

from fedwave.errors import ConfigError
from fedwave.settings.section import Section
from fedwave.toml_text import Settings, toml_from_text


def read_toml(path: Path, *, what: str, advice: str) -> Settings:
    """Return the content of a TOML file; a byte order mark is fine."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(f"the {what} {path} is not a text file in UTF-8. Save it as such.") from error
    except (OSError, ValueError) as error:  # ValueError: a zero byte in the name
        reason = getattr(error, "strerror", None) or str(error)
        raise ConfigError(f"cannot read the {what} {path}: {reason}. {advice}") from error
    return toml_from_text(text, name=f"the {what} {path}")


def anchor_paths(table: Settings, base_dir: Path) -> Settings:
    """Return the table with every relative ``path``, ``..._path`` or file as preset from ``base_dir``."""
    anchored: Settings = {}
    for key, value in table.items():
        if isinstance(value, dict):
            anchored[key] = anchor_paths(value, base_dir)
        elif isinstance(value, str) and _names_file(key, value):
            anchored[key] = str(base_dir / value)
        else:
            anchored[key] = value
    return anchored


def _names_file(key: str, value: str) -> bool:
    return key == "path" or key.endswith("_path") or (key == "preset" and value.endswith(".toml"))


def merge(base: Settings, change: Settings, schema: type[BaseModel] | None = None) -> Settings:
    """Return ``base`` with the later layer ``change`` on top, table by table."""
    merged = copy.deepcopy(base)
    for option in _meaningless_options(base, change, schema):
        merged.pop(option, None)
    for key, value in change.items():
        for spellings in getattr(schema, "alternatives", ()):
            if key in spellings:
                for other in spellings:
                    if other not in change:
                        merged.pop(other, None)
        old = merged.get(key)
        if isinstance(old, dict) and isinstance(value, dict):
            sections = sections_in(_annotation(schema, key))
            is_another_kind = len(sections) > 1 and value.get("kind", old.get("kind")) != old.get("kind")
            section = _section_of_kind(sections, {**old, **value}.get("kind"))
            merged[key] = copy.deepcopy(value) if is_another_kind else merge(old, value, section)
        else:
            merged[key] = copy.deepcopy(value)
    return merged


def _meaningless_options(base: Settings, change: Settings, schema: type[BaseModel] | None) -> set[str]:
    """Return the options of ``base`` that go with a choice which ``change`` has replaced."""
    if schema is None or not issubclass(schema, Section):
        return set()
    options = {
        table
        for key, table in schema.option_tables.items()
        if key in change and change[key] != base.get(key, schema.model_fields[key].default)
    }
    if schema.choice in change:
        options |= schema.foreign_options(change[schema.choice])
    return options


def sections_in(annotation: Any) -> list[type[BaseModel]]:
    """Return the models that an annotation may stand for."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [section for inner in get_args(annotation) for section in sections_in(inner)]


def tag_of(section: type[BaseModel]) -> str | None:
    """Return the ``kind`` by which a union tells this section from the others, if it has one."""
    kind = section.model_fields.get("kind")
    return None if kind is None else str(kind.default)


def _annotation(schema: type[BaseModel] | None, key: str) -> Any:
    if schema is None or key not in schema.model_fields:
        return None
    return schema.model_fields[key].annotation


def _section_of_kind(sections: list[type[BaseModel]], kind: object) -> type[BaseModel] | None:
    if len(sections) == 1:
        return sections[0]
    return next((section for section in sections if tag_of(section) == kind), None)
