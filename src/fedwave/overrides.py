"""Settings changed on the command line: ``-s section.key=value``."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from typing import Any

from fedwave.errors import ConfigError


def apply_overrides(settings: dict[str, Any], words: Iterable[str]) -> dict[str, Any]:
    """Set each ``section.key=value`` in ``settings``, return it. Values are TOML; bare words are strings."""
    for word in words:
        path, equals, text = word.partition("=")
        *sections, key = path.strip().split(".")
        if not equals or not all([*sections, key]):
            raise ConfigError(f'-s takes KEY=VALUE, got "{word}". For example: -s seed=1.')
        table = settings
        for section in sections:
            table = table.setdefault(section, {})
            if not isinstance(table, dict):
                raise ConfigError(
                    f'-s sets "{section}" both as a value and as a table, in "{word}". Keep one.'
                )
        try:
            table[key] = tomllib.loads(f"value = {text}")["value"]
        except tomllib.TOMLDecodeError:
            table[key] = text
    return settings
