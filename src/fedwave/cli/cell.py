"""``fedwave cell``: a cell's link budget and fleet, before anything is trained on it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from fedwave.cli.plain import cell_setting_beginning
from fedwave.errors import ConfigError

if TYPE_CHECKING:
    from fedwave.wireless.describe.cell import CellDescription, TextTable
    from fedwave.wireless.describe.gains import GainsDescription


def cell_beginning(incomplete: str) -> list[str]:
    """Return the presets of cells whose names begin so, for a shell to complete."""
    from fedwave.wireless.settings.presets import CELL_PRESETS

    return [name for name in CELL_PRESETS if name.startswith(incomplete)]


def cell(
    preset: str = typer.Argument(
        None,
        help="A preset's name, a .toml file, or a file of gains. Without one: the list of presets.",
        autocompletion=cell_beginning,
    ),
    setting: list[str] = typer.Option(
        [],
        "--set",
        "-s",
        metavar="KEY=VALUE",
        autocompletion=cell_setting_beginning,
        help="Override a setting, e.g. -s channel.fading.kind=none.",
    ),
    devices: int = typer.Option(
        None, "--devices", "-n", help="Number of devices. Default: as many as the cell's files have, or 100."
    ),
    seed: int = typer.Option(0, min=0, help="Seed of places, shadowing, fading and fleet."),
    model_bits: float = typer.Option(
        None, help="Size S of an upload in bits. Default: the paper's CNN in float32; 1 in normalised cells."
    ),
    plot: Path = typer.Option(None, help="Write a map and histograms to this .png, .pdf or .svg file."),
    export: Path = typer.Option(
        None, help="Write the channel gains of the first --rounds to this .npy file."
    ),
    rounds: int = typer.Option(1, min=1, help="Rounds to export."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON instead of tables."),
) -> None:
    """Show a radio cell: the link budget of its best, median and worst device, and its fleet.

    Examples:

    `fedwave cell umi-3.5ghz --plot cell.png`

    `fedwave cell my_cell.toml`

    `fedwave cell gains.csv -s channel.in_db=true`
    """
    console = Console(highlight=False)
    if preset is None:
        _print_presets(console)
        return
    from fedwave.settings import parse_overrides
    from fedwave.wireless.describe.cell import describe_cell
    from fedwave.wireless.describe.gains import GAINS_SUFFIXES, describe_gains, export_gains
    from fedwave.wireless.settings.load import load_cell

    if Path(preset).suffix in GAINS_SUFFIXES:
        _print_gains(console, describe_gains(Path(preset), in_db=_in_db(setting)), as_json=as_json)
        return
    built = load_cell(preset, num_devices=devices, seed=seed, overrides=parse_overrides(setting))
    description = describe_cell(built, name=preset, model_bits=model_bits)
    if as_json:
        typer.echo(json.dumps(description.as_json(), indent=2))
    else:
        _print_description(console, description)
    if export is not None:
        export_gains(built, export, num_rounds=rounds)
        if not as_json:
            console.print(f"\nGains: {escape(str(export))}")
    if plot is not None:
        from fedwave.plots.cell import plot_cell

        title = f"{Path(preset).name.removesuffix('.toml')}: {built.num_devices} devices, seed {seed}"
        plot_cell(built, description.budget, plot, title=title)
        if not as_json:
            console.print(f"\nPicture: {escape(str(plot))}")


def _in_db(setting: list[str]) -> bool:
    """Return what ``-s channel.in_db=true`` says; a file of gains has no other setting."""
    from fedwave.settings import parse_overrides

    given = parse_overrides(setting)
    in_db = (
        given.get("channel", {}).get("in_db", False) if isinstance(given.get("channel", {}), dict) else None
    )
    if not isinstance(in_db, bool) or given not in ({}, {"channel": {"in_db": in_db}}):
        raise ConfigError("A file of gains has one setting, got others. Use -s channel.in_db=true or none.")
    return in_db


def _print_gains(console: Console, description: GainsDescription, *, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(description.as_json(), indent=2))
        return
    console.print(f"[bold]{escape(description.path)}[/bold]")
    table = Table(box=None, pad_edge=False, show_header=False)
    for label, text in description.lines():
        table.add_row(label, text)
    console.print(table)


def _print_presets(console: Console) -> None:
    from fedwave.toml_text import toml_from_text
    from fedwave.wireless.settings.presets import CELL_PRESETS, preset_text

    table = Table(box=None, pad_edge=False, title="Cell presets", title_justify="left")
    table.add_column("preset")
    table.add_column("what it is")
    for name in CELL_PRESETS:
        table.add_row(name, str(toml_from_text(preset_text(name), name=name)["description"]))
    console.print(table)
    console.print("\nShow one with: fedwave cell umi-3.5ghz --plot cell.png")


def _print_description(console: Console, description: CellDescription) -> None:
    what = description.cell.config.description or "cell"
    console.print(f"[bold]{escape(description.name)}[/bold]: {escape(what)}")
    console.print(f"{description.facts}\n")
    console.print(_table(description.budget_table))
    console.print()
    console.print(_table(description.fleet_table))
    weights = ", ".join(f"{name} = {value:.2g}" for name, value in description.suggested_weights.items())
    if weights:
        console.print(f"\nFor normalised contributions start from: {weights}")
    for warning in description.warnings:
        console.print(f"[yellow]warning:[/yellow] {escape(warning)}")


def _table(text: TextTable) -> Table:
    table = Table(box=None, pad_edge=False, title=text.title, title_justify="left")
    table.add_column("")
    for heading in text.headings:
        table.add_column(heading, justify="right")
    for row in text.rows:
        table.add_row(*map(escape, row))
    return table
