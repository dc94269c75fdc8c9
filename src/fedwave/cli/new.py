"""``fedwave new``."""

from __future__ import annotations

from pathlib import Path

import typer


def new(folder: Path = typer.Argument(..., metavar="FOLDER", help="Folder to make; new or empty.")) -> None:
    """Start a project: a commented experiment, a radio cell, a model and a README that says how to go on.

    Example: `fedwave new my-project`
    """
    from fedwave.experiments.new_project import write_project

    names = ", ".join(path.name for path in write_project(folder))
    typer.echo(f"Wrote {folder}/: {names}")
    typer.echo(f"Start with: cd {folder} && fedwave run experiment.toml")
