"""Parts by name: policies, methods, rules, models, datasets, channels are found, checked and called alike.

A part is named by a word of its kind's dict, or as ``package.module:Name``. What its caller fills in is
passed on as far as the part's own signature names it; every other parameter is an option.
"""

from __future__ import annotations

import builtins
import difflib
import importlib
import inspect
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from inspect import Parameter
from typing import Any

from fedwave.errors import ConfigError, FedwaveError, did_you_mean, shown

_BY_KEYWORD = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)


def _itself(entry: Any) -> Any:
    return entry


@dataclass(frozen=True)
class PartKind:
    """One kind of part: the dict of those that have a name, and what whoever calls a part fills in."""

    what: str  # e.g. "selection policy"
    registry: Mapping[str, Any]
    fills_in: tuple[str, ...] = ()  # names that can never be options
    function_of: Callable[[Any], Callable[..., Any]] = _itself  # what is called of an entry of the dict
    num_positional: int = 0  # arguments that the caller passes by position, whatever they are called
    error: type[FedwaveError] = ConfigError
    protocol: type | None = None  # whose public members what is made must have

    def find(self, name: object, *, key: str = "") -> Any:
        """Return what a name stands for: an entry of the dict, or what ``package.module:Name`` is."""
        if isinstance(name, str) and name in self.registry:
            return self.registry[name]
        if is_import_name(name):
            return imported(str(name), key=key or self.what, error=self.error)
        got, hint = (
            f'"{name}"' if isinstance(name, str) else shown(name),
            did_you_mean(str(name), self.registry),
        )
        said = f"{key.removesuffix('.kind')}: there is no {self.what}" if key else f"There is no {self.what}"
        raise self.error(f"{said} {got}. {hint} Your own is package.module:Name.")

    def parameters(self, entry: Any) -> dict[str, Parameter]:
        """Return the options of an entry with their defaults and, where they can be evaluated, types."""
        function = self.function_of(entry)
        if hasattr(function, "model_fields"):  # a section of settings: its options are its fields
            fields = [name for name in function.model_fields if name not in self.fills_in]
            return {name: Parameter(name, Parameter.KEYWORD_ONLY) for name in fields}
        known = list(signature_of(function).parameters.values())[self.num_positional :]
        bound = function.keywords if isinstance(function, partial) else {}
        return {
            one.name: one
            for one in known
            if one.kind in _BY_KEYWORD and one.name not in self.fills_in and one.name not in bound
        }

    def options(self, name: str) -> tuple[str, ...]:
        """Return the names of a part's options."""
        return tuple(self.parameters(self.find(name)))

    def takes_any(self, entry: Any) -> bool:
        """Return whether a part takes options of any name, by ``**options``."""
        parameters = signature_of(self.function_of(entry)).parameters.values()
        return any(one.kind is Parameter.VAR_KEYWORD for one in parameters)

    def require_options(
        self, name: str, given: Iterable[str], *, key: str = "", near: tuple[str, ...] = ()
    ) -> None:
        """Raise if an option is given that the part does not have, or that its caller fills in.

        ``near`` are names beside the options that may have been meant.
        """
        entry = self.find(name, key=key)
        known = self.parameters(entry)
        for option in given:
            if option in known or (self.takes_any(entry) and option not in self.fills_in):
                continue
            hint = self.hint(name, option, known, near)
            raise self.error(f'{key or self.what} "{name}" has no option {option!r}. {hint}')

    def hint(self, name: str, option: str, known: Iterable[str], near: Iterable[str] = ()) -> str:
        """Return what to do about an option that a part does not have: its owner, the nearest, or all."""
        if option in self.fills_in:
            return "It is filled in for every such part. Leave it out."
        owners = [other for other in self.registry if option in self.parameters(self.registry[other])]
        if owners:
            return f'It is an option of {" and ".join(owners)}, not of "{name}". Leave it out.'
        options = list(known)
        if difflib.get_close_matches(option, [*options, *near]):
            return did_you_mean(option, [*options, *near])
        return did_you_mean(option, options) if options else f'"{name}" has no options. Leave it out.'

    def call(self, entry: Any, options: Mapping[str, Any], **offered: Any) -> Any:
        """Return what the part makes of its options and of those offers that it names."""
        function = self.function_of(entry)
        known = signature_of(function).parameters
        wanted = {name: value for name, value in offered.items() if name in known}
        return function(**wanted, **options)

    def require_members(self, made: Any, name: str, *, key: str) -> None:
        """Raise if what a part made lacks what is asked of every such part."""
        needed = [one for one in vars(self.protocol or object) if not one.startswith("_")]
        lacking = [one for one in needed if not hasattr(made, one)]
        if lacking:
            raise self.error(
                f'{key} "{name}" has no {", ".join(lacking)}. A {self.what} has {", ".join(needed)}; '
                "docs/extending.md has one to copy."
            )


def is_import_name(name: object) -> bool:
    """Return whether a name is of the form ``package.module:Name``."""
    return isinstance(name, str) and ":" in name


def imported(name: str, *, key: str, error: type[FedwaveError] = ConfigError) -> Any:
    """Return what ``package.module:Name`` names."""
    module_name, _, attribute = name.partition(":")
    advice = "Check the spelling, and that the module can be imported from where fedwave runs (PYTHONPATH)."
    try:
        found: Any = importlib.import_module(module_name)
    except (Exception, SystemExit) as problem:  # the user's module may raise anything while it is imported
        raise error(
            f'{key} "{name}": cannot import "{module_name}" ({type(problem).__name__}: {problem}). {advice}'
        ) from problem
    try:
        return getattr(found, attribute)
    except AttributeError as problem:
        raise error(f'{key} "{name}": "{module_name}" has no "{attribute}". {advice}') from problem


def signature_of(function: Callable[..., Any]) -> inspect.Signature:
    """Return the signature of a part, with its types where they can be evaluated here."""
    try:
        return _remembered(function)
    except TypeError:  # it cannot be remembered
        return inspect.signature(function)


@lru_cache(maxsize=256)
def _remembered(function: Callable[..., Any]) -> inspect.Signature:
    signature = inspect.signature(function)
    home = function.func if isinstance(function, partial) else function
    names = vars(sys.modules.get(getattr(home, "__module__", ""), builtins))
    parameters = [
        one.replace(annotation=_evaluated(one.annotation, names)) for one in signature.parameters.values()
    ]
    return signature.replace(parameters=parameters)


def _evaluated(annotation: Any, names: Mapping[str, Any]) -> Any:
    """Return the type that an annotation names, or its text: some are imported for type checkers alone."""
    if not isinstance(annotation, str):
        return annotation
    try:
        return eval(annotation, dict(names))
    except Exception:  # whatever the user wrote there
        return annotation
