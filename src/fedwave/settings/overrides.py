"""Settings changed on the command line: ``-s section.key=value``."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from typing import Any

from fedwave.errors import ConfigError
from fedwave.settings.layers import as_table, merge


def parse_overrides(words: Iterable[str]) -> dict[str, Any]:
    """Return the nested settings of ``section.key=value`` words. Values are TOML; bare words are strings.

    A word for a key that also has keys of its own is the kind of a part: ``a=x`` and ``a.b=1`` make
    ``a = { kind = "x", b = 1 }``.
    """
    settings: dict[str, Any] = {}
    for word in words:
        path, equals, text = word.partition("=")
        *sections, key = [part.strip() for part in path.split(".")]
        if not equals or not all([*sections, key]):
            raise ConfigError(f'-s takes KEY=VALUE, got "{word}". For example: -s seed=1.')
        table = settings
        for section in sections:
            table[section] = as_table(table.get(section, {}))
            table = table[section]
            if not isinstance(table, dict):
                raise _value_and_table(section, word)
        value, before = _value(text), table.get(key)
        if isinstance(before, dict):
            value = as_table(value)
            if not isinstance(value, dict):
                raise _value_and_table(key, word)
            value = merge(before, value)
        table[key] = value
    return settings


def _value_and_table(key: str, word: str) -> ConfigError:
    return ConfigError(f'-s sets "{key}" both as a value and as a table, in "{word}". Keep one.')


def _value(text: str) -> Any:
    """Return the text as TOML; what is not TOML is a plain word, and so is a text with a line break."""
    if "\n" in text or "\r" in text:
        return text
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (ValueError, RecursionError):  # RecursionError: brackets without end
        return text.strip()
