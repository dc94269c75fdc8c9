"""``fedwave compare``."""

from __future__ import annotations

from pathlib import Path

import typer
from rich.console import Console


def compare(
    paths: list[Path] = typer.Argument(..., metavar="RUN_DIR", help="Folders of runs, finished or not."),
    plot: Path = typer.Option(Path("comparison.png"), "--plot", help="Picture to write."),
    target: float | None = typer.Option(
        None,
        "--target",
        min=0.0,
        help="Held-out accuracy (or other metric) whose cost is compared, e.g. 0.6. Default: the best "
        "that all runs reach.",
    ),
) -> None:
    """Compare runs: tables and a picture. Runs of one name are averaged over their seeds.

    Runs over a radio cell are compared by what their accuracy cost: rounds, seconds on the cell's clock, and
    joules of all devices.
    """
    from fedwave.cli.console import print_tables
    from fedwave.cli.run_tables import cost_table, final_table
    from fedwave.plots.runs import plot_runs
    from fedwave.runs.compare import read_run

    runs = [read_run(path) for path in paths]
    print_tables(Console(), final_table(runs), cost_table(runs, target=target))
    typer.echo(f"Picture: {plot_runs(runs, plot)}")
