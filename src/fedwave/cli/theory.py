"""``fedwave theory``: the constants of the paper's analysis on a run or preset, and what its bound says."""

from __future__ import annotations

from pathlib import Path

import typer
from rich.console import Console

from fedwave.cli.plain import setting_beginning
from fedwave.cli.run import need_torch
from fedwave.cli.say import say


def theory(
    source: str = typer.Argument(
        ..., metavar="RUN_DIR or PRESET", help="The folder of a run, a preset, or a TOML file."
    ),
    settings: list[str] = typer.Option(
        [],
        "--set",
        "-s",
        metavar="KEY=VALUE",
        autocompletion=setting_beginning,
        help="Preset: change one setting.",
        show_default=False,
    ),
    rounds: int | None = typer.Option(None, "--rounds", min=0, help="Preset: rounds to play (20)."),
    every: int | None = typer.Option(None, "--every", min=1, help="Preset: rounds between two models (10)."),
    devices: int = typer.Option(10, "--devices", min=2, help="Devices on which constants are measured."),
    iterations: int = typer.Option(10, "--iterations", min=1, help="Products of a Hessian for its norm."),
    probes: int = typer.Option(4, "--probes", min=1, help="Random vectors for the noise of Hessians."),
    out: Path | None = typer.Option(None, "--out", "-o", help="Folder for theory.csv and theory.png."),
) -> None:
    """Measure the constants of the paper's analysis, and compare its bound with what is seen.

    A run is measured at its first model and at the one that it came to, and keeps theory.csv and theory.png,
    which its report shows. A preset is trained for some rounds, and measured on the way.

    Examples:

    `fedwave theory runs/digits-nufm-seed0`

    `fedwave theory digits/nufm --rounds 20`
    """
    need_torch("Measuring a model")
    from fedwave.cli.console import print_tables
    from fedwave.cli.run_tables import text_table
    from fedwave.errors import ConfigError
    from fedwave.experiments import load_experiment
    from fedwave.experiments.build import build_simulation
    from fedwave.plots.draw_chart import draw_chart
    from fedwave.plots.theory import theory_chart
    from fedwave.runs.theory_rows import (
        CONSTANTS,
        SAYINGS,
        theory_header,
        theory_rows,
        verdict,
        write_snapshots,
    )
    from fedwave.runs.theory_snapshots import open_run, take_snapshots
    from fedwave.theory.estimates import Effort

    effort = Effort(num_devices=devices, num_iterations=iterations, num_probes=probes)
    folder = Path(source)
    states = None
    if (folder / "config.toml").is_file():
        for option, value in (("--set", settings), ("--rounds", rounds), ("--every", every)):
            if value not in ([], None):
                raise ConfigError(
                    f"{option} is for a preset, got it with the run {source}, which is measured at its first "
                    "and last model. Leave it out."
                )
        experiment, simulation, states = open_run(folder)
        out = out or folder
    else:
        experiment = load_experiment(source, settings)
        simulation = build_simulation(experiment)
    last, step = 20 if rounds is None else rounds, every or 10
    snapshots = list(take_snapshots(experiment, simulation, states, effort=effort, last=last, every=step))
    tables = []
    for wanted in (CONSTANTS, SAYINGS):
        tables.append(text_table(*theory_header(snapshots)))
        for row in theory_rows(snapshots, wanted):
            tables[-1].add_row(*row)
    print_tables(Console(), *tables)
    say(verdict(snapshots))
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        written = write_snapshots(out, snapshots)
        picture = draw_chart(theory_chart(snapshots)).save(out / "theory.png")
        typer.echo(f"Table: {written}  (picture: {picture.name})")
