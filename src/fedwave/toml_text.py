"""TOML from a text, with one line for what is wrong with it. Needs nothing but the standard library."""

from __future__ import annotations

import tomllib
from typing import Any

from fedwave.errors import ConfigError, FedwaveError

Settings = dict[str, Any]


def toml_from_text(text: str, *, name: str, error: type[FedwaveError] = ConfigError) -> Settings:
    """Return the content of a TOML text; ``name`` is what a message, an ``error``, calls it."""
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as wrong:  # ValueError: also a number of too many digits
        reason = "it is nested too deeply" if isinstance(wrong, RecursionError) else str(wrong)
        raise error(f"{name} is not valid TOML: {reason.partition(';')[0]}. Correct that line.") from wrong
