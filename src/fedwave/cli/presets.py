"""``fedwave new`` and ``fedwave presets``: what to start from."""

from __future__ import annotations

import typer
from rich.console import Console
from rich.table import Table


def preset_beginning(incomplete: str) -> list[str]:
    """Return the presets of experiments whose names begin so, for a shell to complete."""
    from fedwave.experiments.preset_files import preset_names

    return [name for name in preset_names() if name.startswith(incomplete)]


def presets(
    name: str | None = typer.Argument(
        None, metavar="NAME", help="Print this preset's TOML instead.", autocompletion=preset_beginning
    ),
) -> None:
    """List the presets, or print one as TOML to start your own file from.

    Examples:

    `fedwave presets`

    `fedwave presets paper/nufm > my.toml`
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


def new(
    folder: str = typer.Argument(..., metavar="FOLDER", help="Folder to make; new or empty."),
    cell: bool = typer.Option(
        False, "--cell", help="A radio cell alone: measured gains and a fleet in two CSV files, no training."
    ),
) -> None:
    """Start a project: a commented experiment, a radio cell, a model and a README that says how to go on.

    Examples:

    `fedwave new my-project`

    `fedwave new my-cell --cell`
    """
    from fedwave.experiments.new_project import write_project

    names = ", ".join(path.name for path in write_project(folder, cell=cell))
    typer.echo(f"Wrote {folder}/: {names}")
    first = "fedwave allocate cell.toml --compare" if cell else "fedwave run experiment.toml"
    typer.echo(f"Start with: cd {folder} && {first}")
