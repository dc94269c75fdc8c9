"""``fedwave compare`` and ``fedwave report``: runs side by side, in a terminal or on a page."""

from __future__ import annotations

from pathlib import Path

import typer
from rich.console import Console


def compare(
    paths: list[Path] = typer.Argument(..., metavar="RUN_DIR", help="Folders of runs, finished or not."),
    plot: Path | None = typer.Option(
        None, "--plot", help="Picture to write. Default: comparison.png.", show_default=False
    ),
    target: float | None = typer.Option(
        None,
        "--target",
        min=0.0,
        help="Held-out accuracy (or other metric) whose cost is compared; a share is at most 1, e.g. 0.6. "
        "Default: the best that all runs reach.",
    ),
) -> None:
    """Compare runs: tables and a picture. Runs of one name are averaged over their seeds.

    A run that is given twice counts once. Tables need neither torch nor the runs' own parts.

    Runs over a radio cell are compared by what their accuracy cost: rounds, seconds on the cell's clock, and
    joules of all devices. Where devices live on batteries, a third table says when they died.
    """
    from fedwave.cli.console import print_tables
    from fedwave.cli.run_tables import cost_table, final_table, lifetime_table
    from fedwave.errors import MissingExtraError
    from fedwave.plots.runs import plot_runs
    from fedwave.runs.compare import distinct_runs, read_run

    runs = distinct_runs([read_run(path) for path in paths])
    lives = lifetime_table(runs)
    tables = (final_table(runs), cost_table(runs, target=target))
    print_tables(Console(), *tables, *(() if lives is None else (lives,)))
    try:
        typer.echo(f"Picture: {plot_runs(runs, plot or Path('comparison.png'))}")
    except MissingExtraError as error:
        if plot is not None:
            raise
        typer.echo(f"No picture: {error}")


def report(
    paths: list[Path] = typer.Argument(..., metavar="RUN_DIR", help="Folders of runs, finished or not."),
    out: Path = typer.Option(Path("report.html"), "--out", "-o", help="Page to write."),
) -> None:
    """Make one HTML page of runs: it opens offline, and its charts answer to the mouse.

    Curves by rounds and, over a cell, by seconds and joules; who was selected how often; energy by phase and
    by device; the terms of the allocation's objective; settings, and what differs between the runs.
    """
    from fedwave.pages.page import write_page
    from fedwave.pages.runs_page import runs_page
    from fedwave.runs.compare import distinct_runs, read_run

    runs = distinct_runs([read_run(path) for path in paths])
    typer.echo(f"Report: {write_page(out, runs_page(runs))}")
