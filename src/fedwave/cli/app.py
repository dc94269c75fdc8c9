"""The ``fedwave`` command: wires the commands together."""

from __future__ import annotations

import platform
from importlib import metadata

import typer

from fedwave import __version__
from fedwave.cli.account import account_command
from fedwave.cli.allocate import allocate_command
from fedwave.cli.calibrate import calibrate
from fedwave.cli.cell import cell
from fedwave.cli.compare import compare, report, runs
from fedwave.cli.datasets import datasets_app
from fedwave.cli.demo import demo
from fedwave.cli.explore import explore
from fedwave.cli.longterm import longterm
from fedwave.cli.plain import HELP, PlainGroup, add
from fedwave.cli.presets import new, presets
from fedwave.cli.reproduce import reproduce_command
from fedwave.cli.run import resume, run
from fedwave.cli.sweep import sweep
from fedwave.cli.theory import theory

PACKAGES = ("numpy", "scipy", "torch", "pydantic")  # on which the last bits of a result may depend

app = typer.Typer(
    name="fedwave",
    help="""Federated meta-learning over wireless networks.

    Examples:

    `fedwave run digits/nufm`

    `fedwave explore umi-3.5ghz`
    """,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    cls=PlainGroup,
    context_settings=HELP,
)
LEARN, RADIO, RESULTS = "Learn", "Radio", "Results"
add(app, demo, name="demo", group=LEARN)
add(app, new, group=LEARN)
add(app, run, group=LEARN)
add(app, sweep, group=LEARN)
add(app, resume, group=LEARN)
add(app, presets, group=LEARN)
app.add_typer(datasets_app, name="datasets", rich_help_panel=LEARN)
add(app, cell, name="cell", group=RADIO)
add(app, allocate_command, name="allocate", group=RADIO)
add(app, explore, name="explore", group=RADIO)
add(app, account_command, name="account", group=RADIO)
add(app, calibrate, name="calibrate", group=RADIO)
add(app, runs, group=RESULTS)
add(app, compare, group=RESULTS)
add(app, report, group=RESULTS)
add(app, theory, name="theory", group=RESULTS)
add(app, longterm, name="longterm", group=RESULTS)
add(app, reproduce_command, name="reproduce", group=RESULTS)


def version_text() -> str:
    """Return fedwave's version, and in a second line what it stands on; what is not installed is left out."""
    found = [f"Python {platform.python_version()}"]
    for name in PACKAGES:
        try:
            found.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            continue
    return f"fedwave {__version__}\n{', '.join(found)} on {platform.system()} {platform.machine()}"


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(version_text())
        raise typer.Exit


@app.callback()
def _root(
    version: bool = typer.Option(
        False, "--version", callback=_print_version, is_eager=True, help="Print the versions and exit."
    ),
) -> None:
    """Federated meta-learning over wireless networks."""
