"""``fedwave cell``: a cell's link budget and fleet, before anything is trained on it."""

from __future__ import annotations

import json
from pathlib import Path

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from fedwave.settings import parse_overrides
from fedwave.wireless.description import CellDescription, TextTable, describe_cell
from fedwave.wireless.load import CELL_PRESETS, load_cell, preset_table


def cell(
    preset: str = typer.Argument(
        None, help="A preset's name or a .toml file. Without one: the list of presets."
    ),
    setting: list[str] = typer.Option(
        [], "--set", "-s", metavar="KEY=VALUE", help="Override a setting, e.g. -s channel.fading.kind=none."
    ),
    devices: int = typer.Option(100, "--devices", "-n", help="Number of devices."),
    seed: int = typer.Option(0, min=0, help="Seed of places, shadowing, fading and fleet."),
    model_bits: float = typer.Option(
        None, help="Size S of an upload in bits. Default: the paper's CNN in float32; 1 in normalised cells."
    ),
    plot: Path = typer.Option(None, help="Write a map and histograms to this .png, .pdf or .svg file."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON instead of tables."),
) -> None:
    """Show a radio cell: the link budget of its best, median and worst device, and its fleet."""
    console = Console(highlight=False)
    if preset is None:
        _print_presets(console)
        return
    built = load_cell(preset, num_devices=devices, seed=seed, overrides=parse_overrides(setting))
    description = describe_cell(built, name=preset, model_bits=model_bits)
    if as_json:
        typer.echo(json.dumps(description.as_json(), indent=2))
    else:
        _print_description(console, description)
    if plot is not None:
        from fedwave.plots.cell import plot_cell

        title = f"{Path(preset).name.removesuffix('.toml')}: {devices} devices, seed {seed}"
        plot_cell(built, description.budget, plot, title=title)
        if not as_json:
            console.print(f"\nPicture: {escape(str(plot))}")


def _print_presets(console: Console) -> None:
    table = Table(box=None, pad_edge=False, title="Cell presets", title_justify="left")
    table.add_column("preset")
    table.add_column("what it is")
    for name in CELL_PRESETS:
        table.add_row(name, preset_table(name)["description"])
    console.print(table)
    console.print("\nShow one with: fedwave cell umi-3.5ghz --plot cell.png")


def _print_description(console: Console, description: CellDescription) -> None:
    what = description.cell.config.description or "cell"
    console.print(f"[bold]{escape(description.name)}[/bold]: {escape(what)}")
    console.print(f"{description.facts}\n")
    console.print(_table(description.budget_table))
    console.print()
    console.print(_table(description.fleet_table))
    for warning in description.cell.warnings:
        console.print(f"[yellow]warning:[/yellow] {escape(warning)}")


def _table(text: TextTable) -> Table:
    table = Table(box=None, pad_edge=False, title=text.title, title_justify="left")
    table.add_column("")
    for heading in text.headings:
        table.add_column(heading, justify="right")
    for row in text.rows:
        table.add_row(*row)
    return table
