"""Layers of settings: a preset or file below, what extends it above, the command line on top.

A later layer beats an earlier one, key by key. What a later choice makes meaningless goes with the choice:
the watts of a preset when dBm are given, the options of a channel when another kind of channel is asked for.
"""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from fedwave.errors import ConfigError
from fedwave.files import LARGEST_SETTINGS, read_text
from fedwave.settings.parts import Part
from fedwave.settings.section import Section, sections_in
from fedwave.toml_text import Settings, toml_from_text


def read_toml(path: Path, *, what: str, advice: str) -> Settings:
    """Return the content of a TOML file; a byte order mark is fine."""
    try:
        text = read_text(path, largest=LARGEST_SETTINGS)
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
    if schema is not None and issubclass(schema, Part):
        before = base.get("kind", schema.model_fields["kind"].default)
        kind = change.get("kind", before)
        for option in schema.goes_with(base, kind) if kind != before else ():
            merged.pop(option)
        schema = schema.section_of(kind) or schema
    for option in _meaningless_options(change, schema):
        merged.pop(option, None)
    for key, replaced in getattr(schema, "replaces", {}).items():
        if _has(change, key):
            for other in replaced:  # what the same layer says comes back below
                _drop(merged, other)
    for key, value in change.items():
        for spellings in getattr(schema, "alternatives", ()):
            if key in spellings:
                for other in spellings:
                    if other not in change:
                        merged.pop(other, None)
        section = _section_at(schema, key)
        old = merged.get(key)
        if section is not None and issubclass(section, Part) and old is not None:
            old, value = as_table(old), as_table(value)
        if isinstance(old, dict) and isinstance(value, dict):
            merged[key] = merge(old, value, section)
        else:
            merged[key] = copy.deepcopy(value)
    return merged


def _has(table: Settings, key: str) -> bool:
    """Return whether a table has a key, whose parts are separated by points."""
    first, _, rest = key.partition(".")
    inner = table.get(first)
    return first in table if not rest else isinstance(inner, dict) and _has(inner, rest)


def _drop(table: Settings, key: str) -> None:
    """Take such a key out of a table, if it is there."""
    first, _, rest = key.partition(".")
    inner = table.get(first)
    if not rest:
        table.pop(first, None)
    elif isinstance(inner, dict):
        _drop(inner, rest)


def as_table(part: Any) -> Any:
    """Return the table that the short form of a part stands for; anything else as it is."""
    return {"kind": part} if isinstance(part, str) else part


def _meaningless_options(change: Settings, schema: type[BaseModel] | None) -> frozenset[str]:
    """Return the options that go with a choice which ``change`` has replaced."""
    if schema is None or not issubclass(schema, Section) or schema.choice not in change:
        return frozenset()
    return schema.foreign_options(change[schema.choice])


def _section_at(schema: type[BaseModel] | None, key: str) -> type[BaseModel] | None:
    """Return the section that a key of the schema holds, if it holds one."""
    field = None if schema is None else schema.model_fields.get(key)
    found = [] if field is None else sections_in(field.annotation)
    return found[0] if len(found) == 1 else None
