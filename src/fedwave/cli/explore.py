"""``fedwave explore``: a page that shows cells and runs, and answers when a slider moves."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

import typer

DEFAULT_RUNS = "runs"  # where `fedwave run` puts them


def explore(
    shown: list[str] = typer.Argument(
        None,
        metavar="CELL.toml|PRESET|RUN_DIR",
        help="What to show. Default: the preset umi-3.5ghz.",
    ),
    devices: int = typer.Option(
        None, "--devices", "-n", min=1, help="Number of devices at first. Default: 100."
    ),
    seed: int = typer.Option(None, min=0, help="Seed at first. Default: 0."),
    port: int = typer.Option(0, min=0, max=65535, help="Port to listen on. Default: any that is free."),
    no_open: bool = typer.Option(False, "--no-open", help="Print the address, do not open a browser."),
    as_json: bool = typer.Option(
        False, "--json", help="Print every method's numbers of the cell and exit; no page, no server."
    ),
) -> None:
    """Look at a cell and its allocation, or at runs while they run, in a local web page.

    The page is served to this computer alone. "Copy as TOML" on it makes a file that this command takes.

    Examples:

    `fedwave explore umi-3.5ghz`

    `fedwave explore my_cell.toml runs/digits-ural-seed0`
    """
    from fedwave.cli.guard import Interrupted
    from fedwave.errors import ConfigError, import_extra
    from fedwave.explore.api import Api
    from fedwave.explore.workbench import open_all

    sources, runs, first = open_all(shown or [])
    offered = None if runs else Path(DEFAULT_RUNS)
    api = Api(sources, runs, first, num_devices=devices, seed=seed, offered=offered)
    if as_json:
        if not first:
            raise ConfigError("--json prints the numbers of a cell, got run folders alone. Name a cell.")
        source = sources.source(first)
        view = source.first_view(num_devices=devices, seed=seed)
        typer.echo(json.dumps(api.report(source, view), indent=2, allow_nan=False))
        return
    for module in ("starlette", "uvicorn"):
        import_extra(module, purpose="The explorer", extra="explore")
    from fedwave.explore.server import serve

    def say(address: str) -> None:
        typer.echo(f"Explorer: {address}\nCtrl-C ends it.")

    with suppress(Interrupted, KeyboardInterrupt):  # how a server is ended, so no failure
        serve(api, port=port, opens_browser=not no_open, say=say)
