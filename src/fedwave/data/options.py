"""The options of a dataset or partition are the keyword arguments of its function; no other is accepted."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterable
from typing import Any

from fedwave.errors import ConfigError, did_you_mean


def keyword_options(
    function: Callable[..., Any], *, num_positional: int, common: Collection[str] = ()
) -> tuple[str, ...]:
    """Return the names of the arguments after the positional ones, without those that all functions take."""
    parameters = list(inspect.signature(function).parameters.values())[num_positional:]
    named = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return tuple(p.name for p in parameters if p.kind in named and p.name not in common)


def refuse_other_options(
    given: Iterable[str],
    kind: str,
    *,
    kinds: Iterable[str],
    options_of: Callable[[str], tuple[str, ...]],
    what: str,
) -> None:
    """Refuse an option that is not the kind's own, and say whose it is, or which one was meant."""
    known = options_of(kind)
    for option in given:
        if option in known:
            continue
        owners = [other for other in kinds if option in options_of(other)]
        if owners:
            raise ConfigError(
                f'Option "{option}" belongs to {what} {" and ".join(owners)}, got {what} {kind}. '
                f"Remove it, or choose another {what}."
            )
        hint = did_you_mean(option, known) if known else "It has none; remove it."
        raise ConfigError(f'Unknown option "{option}" of {what} {kind}. {hint}')
