"""``fedwave account``: what messages and operations of any run cost over a cell, in seconds and joules."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from fedwave.cli.cell import cell_beginning
from fedwave.cli.plain import cell_setting_beginning
from fedwave.errors import ConfigError

if TYPE_CHECKING:
    from fedwave.simulation.account import Account

_MAX_ROWS = 20  # of the printed table; --csv and --json have them all


def account_command(
    source: Path = typer.Argument(
        ...,
        metavar="MESSAGES.csv|RUN_DIR",
        help="CSV with round, device and any of download_bytes, operations (or samples), report_bytes, "
        "upload_bytes, block, transmit_power_w, cpu_frequency_hz; or the folder of a run without a cell.",
    ),
    preset: str = typer.Option(
        "umi-3.5ghz", "--cell", "-c", help="A cell's preset or .toml file.", autocompletion=cell_beginning
    ),
    setting: list[str] = typer.Option(
        [],
        "--set",
        "-s",
        metavar="KEY=VALUE",
        autocompletion=cell_setting_beginning,
        help="Override a setting of the cell, e.g. -s radio.power_set=measured-x55 or "
        "-s carbon_intensity_g_per_kwh=380.",
    ),
    devices: int = typer.Option(
        None, "--devices", "-n", min=1, help="Devices in the cell. Default: as many as the table names."
    ),
    seed: int = typer.Option(0, min=0, help="Seed of places, shadowing, fading and fleet."),
    operations: float = typer.Option(
        None,
        min=0.0,
        help="For the folder of a run: multiply-adds of one device in one round (in a cell whose fleet has "
        "cycles_per_sample: samples).",
    ),
    model_bytes: float = typer.Option(
        None,
        min=0.0,
        help="For the folder of a run: bytes of a model. Default: four for each of its parameters.",
    ),
    csv_out: Path = typer.Option(None, "--csv", help="Write a row for each round to this file."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON instead of a table."),
) -> None:
    """Account for messages, bytes and operations of any run, e.g. with Flower, over a radio cell.

    Seconds, joules and, with carbon_intensity_g_per_kwh, grams of CO2. What the table does not decide is full
    power, full CPU frequency, and blocks by the least sum of upload times. Devices that a round does not name
    are asleep, and count.

    Examples:

    `fedwave account messages.csv --cell umi-3.5ghz`

    `fedwave account runs/digits-ural-seed0 --operations 1e6`
    """
    from fedwave.settings import parse_overrides
    from fedwave.simulation.account import account
    from fedwave.simulation.account_tables import messages_of_run, read_messages
    from fedwave.wireless.cell import Cell
    from fedwave.wireless.settings.load import load_cell_config

    config = load_cell_config(preset, parse_overrides(setting))
    if source.is_dir():
        if operations is None:
            raise ConfigError(
                "the folder of a run does not say how much its devices computed, so --operations is needed. "
                "Give the multiply-adds of one device in one round, or 0."
            )
        messages = messages_of_run(source, work=operations, model_bytes=model_bytes)
    elif operations is not None or model_bytes is not None:
        raise ConfigError(
            "--operations and --model-bytes are for the folder of a run, got a table. Use its columns."
        )
    else:
        messages = read_messages(source, counts_samples=not config.fleet.counts_operations)
    num_devices = int(messages.device.max(initial=0)) + 1 if devices is None else devices
    cell = Cell.build(config, num_devices=num_devices, seed=seed, operations_per_sample=1.0)
    found = account(cell, messages)
    if csv_out is not None:
        lines = [",".join(found.rows()[0]), *(",".join(map(repr, row.values())) for row in found.rows())]
        csv_out.write_text("\n".join(lines) + "\n", encoding="utf-8")
    if as_json:
        typer.echo(json.dumps(_plain(found), indent=2))
        return
    console = Console(highlight=False)
    console.print(_table(found))
    for warning in [*cell.warnings, *found.warnings]:
        console.print(f"[yellow]warning:[/yellow] {escape(warning)}")
    if csv_out is not None:
        console.print(f"\nRounds: {escape(str(csv_out))}")


def _plain(found: Account) -> dict[str, object]:
    return {
        "rounds": found.rows(),
        "delay_s": found.delay_s,
        "energy_j": found.energy_j,
        **({} if found.carbon_g is None else {"carbon_g": found.carbon_g}),
        "device_energy_j": found.device_energy_j.tolist(),
        "warnings": found.warnings,
    }


def _table(found: Account) -> Table:
    rows = found.rows()
    names = {"carbon_g": "gCO2", "delay_s": "seconds", "energy_j": "joules", "round": "round"}
    table = Table(box=None, pad_edge=False)
    for name in rows[0]:
        table.add_column(names.get(name, name.removesuffix("_energy_j")), justify="right")
    for row in rows[:_MAX_ROWS]:
        table.add_row(*(str(value) if name == "round" else f"{value:.4g}" for name, value in row.items()))
    if len(rows) > _MAX_ROWS:
        table.add_row("…")
    table.add_row(
        *("all" if name == "round" else f"{sum(row[name] for row in rows):.4g}" for name in rows[0]),
        style="bold",
    )
    return table
