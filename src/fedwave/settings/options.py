"""Options of a named part (a policy, a method, a server step): checked against its own signature."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from typing import Any

from fedwave.errors import ConfigError, did_you_mean


def options_of(part: Callable[..., Any], *, reserved: Collection[str] = ()) -> tuple[str, ...]:
    """Return the names that a part takes by keyword, without those that its caller fills in itself."""
    return tuple(
        name
        for name, parameter in inspect.signature(part).parameters.items()
        if name not in reserved
        and parameter.kind in (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    )


def require_known(name: str, registry: Mapping[str, Any], *, key: str) -> None:
    """Raise if the registry has no part of that name."""
    if name not in registry:
        raise ConfigError(f'{key} must be known, got "{name}". {did_you_mean(name, registry)}')


def require_options(given: Collection[str], known: Collection[str], *, table: str, owner: str) -> None:
    """Raise if an option is given that the part does not have."""
    for option in given:
        if option not in known:
            hint = did_you_mean(option, known) if known else "It has no options; leave the table out."
            raise ConfigError(f'{table}.{option} is not an option of "{owner}". {hint}')
