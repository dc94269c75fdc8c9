"""The errors fedwave raises. Each message is one line: what is wrong, what was got, how to fix it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from types import ModuleType


class FedwaveError(Exception):
    """Base of every error that fedwave raises on purpose."""


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


class MissingExtraError(FedwaveError):
    """An optional dependency is not installed."""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return ``'Did you mean "x"?'`` for the known word nearest to ``word``, or the whole list."""
    choices = list(known)
    nearest = difflib.get_close_matches(word, choices, n=1, cutoff=0.6)
    if nearest:
        return f'Did you mean "{nearest[0]}"?'
    return "Choose one of: " + ", ".join(choices) + "."


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
