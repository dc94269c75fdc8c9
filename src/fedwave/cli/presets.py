"""``fedwave presets``."""

from __future__ import annotations

import typer
from rich.console import Console
from rich.table import Table

from fedwave.cli.completion import preset_beginning


def presets(
    name: str | None = typer.Argument(
        None, metavar="NAME", help="Print this preset's TOML instead.", autocompletion=preset_beginning
    ),
) -> None:
    """List the presets, or print one as TOML to start your own file from.

    Example: `fedwave presets paper/nufm > my.toml`
    """
    from fedwave.experiments.preset_files import preset_names, preset_text

    if name is not None:
        typer.echo(preset_text(name), nl=False)
        return
    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("preset", no_wrap=True)
    table.add_column("what it is")
    for preset in preset_names():
        first_line = preset_text(preset).splitlines()[0].lstrip("# ")
        table.add_row(preset, first_line)
    Console().print(table)
