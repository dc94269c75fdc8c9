"""``fedwave calibrate``: measured watts of a radio become a cell file."""

from __future__ import annotations

from pathlib import Path

import typer

from fedwave.cli.cell import cell_beginning


def calibrate(
    measured: Path = typer.Argument(
        ...,
        metavar="WATTS.csv",
        help="CSV with state (send, receive or wait), watts, and for send the transmit power in dbm.",
    ),
    preset: str = typer.Option(
        None, "--cell", "-c", help="A cell's preset to put the watts on.", autocompletion=cell_beginning
    ),
    out: Path = typer.Option(None, "--out", "-o", help="Cell file to write. Default: print it."),
) -> None:
    """Make a cell file of measured watts: least squares for amplifier and circuit, means for other states.

    Examples:

    `fedwave calibrate watts.csv`

    `fedwave calibrate watts.csv --cell umi-3.5ghz -o cell.toml`
    """
    from fedwave.wireless.calibration import read_calibration
    from fedwave.wireless.settings.load import load_cell_config

    if preset is not None:
        load_cell_config(preset)  # a name that is wrong is said before a file is written
    text = read_calibration(measured).to_toml(preset=preset, source=measured.name)
    if out is None:
        typer.echo(text, nl=False)
        return
    out.write_text(text, encoding="utf-8")
    typer.echo(f"Cell file: {out}")
