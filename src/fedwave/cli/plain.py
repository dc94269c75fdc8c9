"""Commands with plain help: no type beside a flag, words for others, -h, and guesses at wrong options."""

from __future__ import annotations

import difflib
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from fedwave.errors import ConfigError, did_you_mean

WORDS = {"Path": "FILE", "int": "NUMBER", "float": "NUMBER", "str": "TEXT"}
HELP = {"help_option_names": ["-h", "--help"]}


def _plain(params: list[Any]) -> list[Any]:
    """Return parameters with what stands beside their names: nothing for a flag, a word for a value."""
    for param in params:
        if param.param_type_name == "option" and param.metavar is None:
            is_flag = getattr(param, "is_flag", False) or param.name == "help"
            kind = getattr(getattr(param, "type_descriptor", None), "annotation", None)
            inner = getattr(kind, "__args__", (kind,))[0] if kind is not None else None
            word = WORDS.get(getattr(inner, "__name__", ""))
            param.metavar = "" if is_flag else word
        elif param.param_type_name == "argument" and hasattr(param, "display_type_rich"):
            param.display_type_rich = lambda ctx: None  # its name says what it is
    return params


MEANT = {"train": "run", "simulate": "run", "init": "new", "plot": "compare", "list": "runs", "show": "runs"}


class PlainGroup(TyperGroup):
    """The group of all commands."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that the first word names; where it is none, say which may be meant."""
        if args and not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            known = self.list_commands(ctx)
            meant = MEANT.get(args[0], "")
            hint = f'Did you mean "{meant}"?' if meant in known else did_you_mean(args[0], known)
            raise ConfigError(f'There is no command "{args[0]}". {hint}')
        return super().resolve_command(ctx, args)

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters, plainly named."""
        return _plain(super().get_params(ctx))


class PlainCommand(TyperCommand):
    """One command."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters, plainly named."""
        return _plain(super().get_params(ctx))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the words; where an option is none of the command's, say which setting may be meant."""
        given = list(args)
        try:
            return super().parse_args(ctx, args)
        except Exception as error:
            wrong = getattr(error, "option_name", None)
            takes_settings = any(param.name in ("settings", "setting") for param in self.params)
            if wrong is None or not takes_settings:
                raise
            raise ConfigError(_other_option(str(wrong), given, error, ctx)) from None


def _other_option(wrong: str, given: list[str], error: Exception, ctx: Any) -> str:
    """Return the line about an option that a command does not have, and how its setting is written."""
    from fedwave.settings.guess import guess_key

    is_cell = ctx.info_name in ("cell", "allocate", "account")
    word = wrong.partition("=")[0]
    hint = guess_key(_schema(is_cell=is_cell), word)
    near = difflib.get_close_matches(word, getattr(error, "possibilities", None) or (), cutoff=0.75)
    if near:
        hint = f"Did you mean {' or '.join(sorted(near))}?"
    elif word in given and given.index(word) + 1 < len(given) and hint.count(" or ") == 0 and hint:
        key, value = hint.removeprefix("Did you mean ").removesuffix("?"), given[given.index(word) + 1]
        hint = f"Did you mean -s {key}={value}?"
    return f"There is no option {word}. {hint or 'A setting is changed by -s KEY=VALUE.'} See --help."


def _schema(*, is_cell: bool) -> Any:
    if is_cell:
        from fedwave.wireless.settings.config import CellConfig

        return CellConfig
    from fedwave.experiments.schema import Experiment

    return Experiment


def setting_beginning(incomplete: str) -> list[str]:
    """Return the settings whose keys begin so, each with its equals sign, for a shell to complete."""
    return _beginning(incomplete, is_cell=False)


def cell_setting_beginning(incomplete: str) -> list[str]:
    """Return the settings of a cell whose keys begin so."""
    return _beginning(incomplete, is_cell=True)


def _beginning(incomplete: str, *, is_cell: bool) -> list[str]:
    from fedwave.settings.guess import keys_of

    return [f"{key}=" for key in keys_of(_schema(is_cell=is_cell)) if key.startswith(incomplete)]


def add(app: typer.Typer, command: Any, *, name: str | None = None, group: str) -> None:
    """Add a command to the app, in its group of the help."""
    app.command(name=name, cls=PlainCommand, rich_help_panel=group, context_settings=HELP)(command)
