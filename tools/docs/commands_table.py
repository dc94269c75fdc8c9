"""Every command with its arguments, options and examples in docs/command-line.md, made from the app."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from fedwave.cli.app import app
from tools.docs.pages import escape

SECTION = "Examples:"  # of a help text, one command below the other


def commands_reference() -> str:
    """Return a heading for each group of the help, and below it one for each of its commands."""
    groups: dict[str, list[str]] = {}
    group_of = {words[1]: str(one.rich_help_panel) for words, one in every_command() if len(words) == 2}
    for words, command in every_command():
        if words[1:]:
            groups.setdefault(group_of[words[1]], []).append(_command(" ".join(words), command))
    return "\n".join(f"### {group}\n\n" + "\n".join(texts) for group, texts in groups.items())


def every_command() -> Iterator[tuple[list[str], Any]]:
    """Yield the words of every command and the command itself; the first one is ``fedwave`` alone."""
    yield from _walk(["fedwave"], typer.main.get_command(app))


def examples(command: Any) -> list[str]:
    """Return the examples of a command's help."""
    return re.findall(r"`(fedwave [^`]+)`", (command.help or "").partition(SECTION)[2])


def parameters(command: Any) -> list[Any]:
    """Return a command's arguments and options as its help has them; ``--help`` is every command's."""
    context = command.make_context(command.name, [], resilient_parsing=True)
    return [one for one in command.get_params(context) if one.name != "help"]


def _walk(words: list[str], command: Any) -> Iterator[tuple[list[str], Any]]:
    yield words, command
    for name, inner in getattr(command, "commands", {}).items():
        yield from _walk([*words, name], inner)


def _command(words: str, command: Any) -> str:
    about = " ".join((command.help or "").partition(SECTION)[0].split())
    rows = [f"| {_name(one)} | {_meaning(one)} |" for one in parameters(command)]
    table = ["| word | meaning |", "|---|---|", *rows, ""] if rows else []
    return "\n".join([f"#### {words}", "", about, "", *table, "```sh", *examples(command), "```", ""])


def _name(parameter: Any) -> str:
    """Return how a parameter is written: an argument by its word, an option by its names."""
    word = escape(parameter.metavar or "")
    if parameter.param_type_name == "argument":
        return f"`{word or parameter.name.upper()}`"
    return ", ".join(f"`{name}`" for name in parameter.opts) + (f" {word}" if word else "")


def _meaning(parameter: Any) -> str:
    text = escape(" ".join((parameter.help or "").split()))
    if parameter.param_type_name == "argument" and parameter.required:
        return f"{text} Needed."
    default = parameter.default
    is_said = parameter.show_default and not isinstance(default, bool | None) and default not in ([], ())
    if not is_said or callable(default):
        return text
    shown = default.as_posix() if isinstance(default, Path) else default
    return f"{text} Default: `{shown}`."
