"""``fedwave cell``: a cell's link budget and fleet, before anything is trained on it."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from fedwave.overrides import apply_overrides
from fedwave.wireless.cell import Cell
from fedwave.wireless.config import LogDistanceChannel, ThreeGppChannel
from fedwave.wireless.link_budget import LinkBudget, LinkBudgetRow, link_budget
from fedwave.wireless.load import CELL_PRESETS, load_cell_config, preset_table

# The paper's CNN on 28 x 28 images: 113,162 float32 parameters. In normalised cells S = 1, as in Table III.
PAPER_CNN_BITS = 113_162 * 32


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
    config = load_cell_config(preset, apply_overrides({}, setting))
    built = Cell.build(config, num_devices=devices, seed=seed)
    bits = model_bits if model_bits is not None else (1.0 if config.normalised else float(PAPER_CNN_BITS))
    budget = link_budget(built, built.draw(0), model_bits=bits)
    if as_json:
        typer.echo(json.dumps(_as_json(preset, built, budget), indent=2))
    else:
        _print_cell(console, preset, built, budget)
    if plot is not None:
        from fedwave.plots.cell import plot_cell

        plot_cell(
            built,
            budget,
            plot,
            title=f"{Path(preset).name.removesuffix('.toml')}: {devices} devices, seed {seed}",
        )
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


def _print_cell(console: Console, name: str, cell: Cell, budget: LinkBudget) -> None:
    config = cell.config
    console.print(f"[bold]{escape(name)}[/bold]: {escape(config.description or 'cell')}")
    redraw = "drawn once" if config.redraw == "static" else "drawn anew each round"
    if config.normalised:
        facts = f"{cell.num_blocks} blocks, B = {cell.bandwidth_hz:g}, N0 = {cell.noise_psd_w_per_hz:g}"
    else:
        noise_dbm = 10.0 * math.log10(cell.noise_w * 1e3)
        facts = (
            f"{cell.num_blocks} blocks of {si(cell.bandwidth_hz, 'Hz')}, noise {noise_dbm:.1f} dBm in each"
        )
    console.print(f"{cell.num_devices} devices, {facts}\nchannel {redraw}, seed {cell.seed}\n")
    console.print(_budget_table(cell, budget))
    console.print()
    console.print(_fleet_table(cell))
    for warning in cell.warnings:
        console.print(f"[yellow]warning:[/yellow] {escape(warning)}")


def _budget_table(cell: Cell, budget: LinkBudget) -> Table:
    size = f"S = {budget.model_bits:g}" if cell.config.normalised else si(budget.model_bits, "bit")
    table = Table(
        box=None, pad_edge=False, title=f"Link budget at full power, upload of {size}", title_justify="left"
    )
    table.add_column("")
    for row in budget.rows:
        table.add_column(row.who, justify="right")
    lines = _normalised_lines if cell.config.normalised else _si_lines
    per_device = [lines(cell, row) for row in budget.rows]
    for label in per_device[0]:
        table.add_row(label, *(entries[label] for entries in per_device))
    return table


def _si_lines(cell: Cell, row: LinkBudgetRow) -> dict[str, str]:
    lines = {"device, block": f"{row.device_index}, {row.block_index}"}
    place, channel = cell.large_scale, cell.config.channel
    if row.distance_m is not None:
        lines["distance"] = f"{row.distance_m:.0f} m" if row.distance_m >= 10 else f"{row.distance_m:.1f} m"
    if row.is_line_of_sight is not None:
        lines["line of sight"] = "yes" if row.is_line_of_sight else "no"
    lines["  transmit power"] = f"{row.transmit_power_dbm:.1f} dBm"
    if place is not None:
        lines["- path loss"] = f"{row.path_loss_db:.1f} dB"
        if place.shadowing_db.any():
            lines["- shadowing"] = f"{row.shadowing_db:.1f} dB"
        if place.antenna_gain_db:
            lines["+ antennas"] = f"{place.antenna_gain_db:.1f} dB"
        if isinstance(channel, ThreeGppChannel | LogDistanceChannel) and channel.fading.kind != "none":
            lines["+ fading"] = f"{row.fading_db:.1f} dB"
    else:
        lines["+ channel gain"] = f"{row.channel_gain_db:.1f} dB"
    lines["- noise, interference"] = f"{row.noise_dbm:.1f} dBm"
    lines["= SNR"] = f"{row.snr_db:.1f} dB"
    lines["rate"] = si(row.rate_bps, "bit/s")
    lines["upload time"] = si(row.upload_delay_s, "s")
    lines["upload energy"] = si(row.upload_energy_j, "J")
    return lines


def _normalised_lines(cell: Cell, row: LinkBudgetRow) -> dict[str, str]:
    del cell
    return {
        "device, block": f"{row.device_index}, {row.block_index}",
        "transmit power p_max": f"{row.transmit_power_w:.4g}",
        "channel gain h": f"{row.channel_gain:.4g}",
        "noise, interference": f"{row.noise_w:.4g}",
        "SNR": f"{row.snr_db:.1f} dB",
        "rate": f"{row.rate_bps:.4g}",
        "upload time": f"{row.upload_delay_s:.4g}",
        "upload energy": f"{row.upload_energy_j:.4g}",
    }


def _fleet_table(cell: Cell) -> Table:
    table = Table(box=None, pad_edge=False, title="Fleet", title_justify="left")
    table.add_column("")
    for heading in ("smallest", "median", "largest"):
        table.add_column(heading, justify="right")
    units = {"max_power_w": "W", "max_frequency_hz": "Hz", "capacitance": None, "cycles_per_sample": None}
    for name, (low, middle, high) in _fleet_summary(cell).items():
        unit = None if cell.config.normalised else units[name]
        values = [si(v, unit) if unit else f"{v:.3g}" for v in (low, middle, high)]
        table.add_row(name, *values)
    return table


def _fleet_summary(cell: Cell) -> dict[str, tuple[float, float, float]]:
    columns = {field.name: getattr(cell.fleet, field.name) for field in dataclasses.fields(cell.fleet)}
    return {name: (float(v.min()), float(np.median(v)), float(v.max())) for name, v in columns.items()}


def _as_json(name: str, cell: Cell, budget: LinkBudget) -> dict[str, Any]:
    """Return plain data; a number that is not finite (a device that is never heard) becomes null."""
    rows = [
        {
            key: None if isinstance(value, float) and not math.isfinite(value) else value
            for key, value in dataclasses.asdict(row).items()
        }
        for row in budget.rows
    ]
    return {
        "cell": name,
        "num_devices": cell.num_devices,
        "num_blocks": cell.num_blocks,
        "bandwidth_hz": cell.bandwidth_hz,
        "noise_psd_w_per_hz": cell.noise_psd_w_per_hz,
        "normalised": cell.config.normalised,
        "seed": cell.seed,
        "model_bits": budget.model_bits,
        "link_budget": rows,
        "fleet": {
            name: dict(zip(("smallest", "median", "largest"), values, strict=True))
            for name, values in _fleet_summary(cell).items()
        },
        "warnings": list(cell.warnings),
        "config": cell.config.model_dump(mode="json"),
    }


_PREFIXES = ((1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""), (1e-3, "m"), (1e-6, "µ"), (1e-9, "n"))


def si(value: float, unit: str) -> str:
    """Return a number with three digits and an SI prefix: 3.62 Mbit."""
    if value == 0 or not math.isfinite(value):
        return "never" if unit == "s" and value else f"{value:g} {unit}"
    scale, prefix = next(((s, p) for s, p in _PREFIXES if abs(value) >= 0.9995 * s), _PREFIXES[-1])
    return f"{value / scale:.3g} {prefix}{unit}"
