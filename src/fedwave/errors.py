"""The errors fedwave raises. Each message is one line: what is wrong, what was got, how to fix it."""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Callable, Iterable
from dataclasses import fields
from functools import wraps
from types import ModuleType
from typing import Any, TypeVar

_Class = TypeVar("_Class", bound=type)


class FedwaveError(Exception):
    """Base of every error that fedwave raises on purpose."""

    def __str__(self) -> str:
        """Return the message as one line, whatever a file's content or name brings into it."""
        return " ".join(super().__str__().splitlines())


class ConfigError(FedwaveError):
    """A configuration value, key or combination is not valid."""


class DataError(FedwaveError):
    """A dataset is missing, corrupt, or cannot meet the requested partition."""


class ModelError(FedwaveError):
    """A model factory cannot be imported, or what it built cannot be trained."""


class ProblemError(FedwaveError):
    """An allocation problem or a radio cell is not well formed."""


class RunError(FedwaveError):
    """A run folder cannot be written, read or resumed."""


class DivergenceError(RunError):
    """Training produced a loss that is not finite."""


class TooLargeError(FedwaveError):
    """Something would need more memory than there is."""


class MissingExtraError(FedwaveError):
    """An optional dependency is not installed."""


MAX_SHOWN = 80  # characters of a wrong value in a message
MAX_MEANT = 3  # names that may have been meant; of more, all are listed
MIN_PART = 3  # letters of a part of a name by which it is guessed


class DeprecatedWarning(FutureWarning):
    """Something works for the last minor release; a ``FutureWarning``, so that users see it by default."""


def deprecated(what: str, *, use: str, gone_in: str) -> None:
    """Warn that ``what`` goes in a later version, and say what to use: CONTRIBUTING.md, "Deprecation"."""
    warnings.warn(f"{what} is deprecated and goes in {gone_in}. Use {use}.", DeprecatedWarning, stacklevel=3)


def shown(value: object) -> str:
    """Return a wrong value for a message: one line, and not a long one."""
    try:
        text = repr(value)
    except Exception:  # a value of any type may be wrong, also one that cannot be written out
        return f"a {type(value).__name__}"
    text = " ".join(text.split())
    return text if len(text) <= MAX_SHOWN else text[: MAX_SHOWN - 3] + "..."


def require_type(value: object, wanted: type | tuple[type, ...], *, name: str, fix: str) -> None:
    """Raise a ``TypeError`` that says what was expected; for arguments that the caller of Python gives."""
    if not isinstance(value, wanted):
        types = wanted if isinstance(wanted, tuple) else (wanted,)
        expected = " or ".join(one.__name__ for one in types)
        raise TypeError(
            f"{name} must be of type {expected}, got {shown(value)} ({type(value).__name__}). {fix}"
        )


def require_count(option: str, value: object, *, at_least: int) -> int:
    """Return ``value`` when it is a whole number not below ``at_least``; raise otherwise."""
    if isinstance(value, bool) or not isinstance(value, int) or value < at_least:
        raise ConfigError(f"{option} must be a whole number >= {at_least}, got {value!r}. Change {option}.")
    return value


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return ``'Did you mean "x"?'`` for the known word nearest to ``word``, or the whole list.

    Near is also what ends in the word behind a slash ("nufm" of "paper/nufm"), or has it within.
    """
    choices = list(known)
    nearest = (
        [one for one in choices if one.endswith(f"/{word}")]
        or difflib.get_close_matches(word, choices, n=1, cutoff=0.6)
        or [one for one in choices if len(word) >= MIN_PART and word in one]
    )
    if 0 < len(nearest) <= MAX_MEANT:
        meant = " or ".join(f'"{one}"' for one in nearest)
        return f"Did you mean {meant}?"
    return "Choose one of: " + ", ".join(choices) + "."


def require_known(given: Iterable[str], known: Iterable[str], *, what: str) -> None:
    """Raise if a name is given that ``what`` does not have; the message names the nearest one."""
    choices = list(known)
    for name in given:
        if name not in choices:
            raise ProblemError(f"{what} has no field {name!r}. {did_you_mean(name, choices)}")


def naming_fields(cls: _Class) -> _Class:
    """Make a dataclass refuse a misspelt field with the one that was meant, not with a bare TypeError."""
    create: Callable[..., None] = vars(cls)["__init__"]

    @wraps(create)
    def init(self: Any, *args: Any, **given: Any) -> None:
        require_known(given, [field.name for field in fields(cls)], what=cls.__name__)
        create(self, *args, **given)

    cls.__init__ = init  # type: ignore[misc]
    return cls


def import_extra(module: str, *, purpose: str, extra: str) -> ModuleType:
    """Return the named optional module, or raise an error that says how to install it."""
    import importlib

    try:
        return importlib.import_module(module)
    except ImportError as error:
        top = module.split(".")[0]
        raise MissingExtraError(
            f"{purpose} needs {top}, which cannot be imported ({error}). "
            f'Install it with: pip install "fedwave[{extra}]"'
        ) from error
