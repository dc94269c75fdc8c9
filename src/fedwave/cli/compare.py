"""``fedwave runs``, ``compare`` and ``report``: runs listed, side by side, and on a page."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Literal, get_args

import typer
from rich.console import Console

from fedwave.cli.say import say

RUNS = typer.Argument(
    ...,
    metavar="RUN_DIR",
    help="Folders of runs, finished or not; a folder that holds runs means all of them.",
)
TARGET = typer.Option(
    None,
    "--target",
    min=0.0,
    help="Held-out accuracy (or other metric) whose cost is compared; a share is at most 1, e.g. 0.6. "
    "Default: the best that all runs reach.",
)
BASELINE = typer.Option(
    None,
    "--baseline",
    metavar="NAME",
    help="The run that the others are compared with, seed by seed: its name, or a part of it. Default: the "
    "first.",
    show_default=False,
)
Format = Literal["table", "latex", "markdown", "csv", "json"]


def runs(
    folder: Path = typer.Argument(Path("runs"), metavar="FOLDER", help="Folder that holds runs."),
) -> None:
    """List the runs in a folder: scheme, dataset, seed, how far each is, and what it came to.

    Examples:

    `fedwave runs`

    `fedwave runs my-study`
    """
    from rich.text import Text

    from fedwave.cli.console import print_tables
    from fedwave.cli.run_tables import text_table
    from fedwave.runs.compare import settings_labels
    from fedwave.runs.listing import list_runs

    listed = list_runs(folder)
    found = [(one, one.run) for one in listed if one.run is not None]
    labels = settings_labels([run for _, run in found])
    table = text_table("folder", "seed", "rounds", "finished", "held out", "run")
    for (one, run), label in zip(found, labels, strict=True):
        value = run.last(f"heldout_{run.metric.name}")
        figure = f"{value:.1%}" if run.metric.is_share else f"{value:.4g}"
        table.add_row(
            Text(str(one.path)),
            str(run.experiment.seed),
            f"{run.num_rounds} of {run.experiment.num_rounds}",
            one.is_finished,
            "-" if math.isnan(value) else figure,
            Text(label),
        )
    if table.row_count:
        print_tables(Console(), table, first_share=0.5)  # a folder is to be copied
    for one in listed:
        if one.fault:
            say(f"Cannot be read: {one.fault}")


def compare(
    paths: list[Path] = RUNS,
    plot: Path | None = typer.Option(
        None, "--plot", help="Picture to write. Default: comparison.png.", show_default=False
    ),
    target: float | None = TARGET,
    baseline: str | None = BASELINE,
    style: str = typer.Option(
        "screen", "--style", metavar="screen|paper|slides", help="Type and size of the picture."
    ),
    by: str | None = typer.Option(
        None, "--by", metavar="rounds|seconds|joules", help="Draw by this alone.", show_default=False
    ),
    metric: str | None = typer.Option(
        None, "--metric", metavar="NAME", help="Draw this alone: accuracy, loss.", show_default=False
    ),
    width: str | None = typer.Option(
        None, "--width", metavar="column|page", help="Width of the picture, in a paper.", show_default=False
    ),
    form: str = typer.Option(
        "table",
        "--format",
        metavar="FORM",
        help=f"How to print: {', '.join(get_args(Format))}. All but table draw no picture.",
    ),
) -> None:
    """Compare runs: tables and a picture. Runs of one name are averaged over their seeds.

    A run that is given twice counts once. Tables need neither torch nor the runs' own parts.

    Beside each figure stands the difference (Δ) or ratio (×) to the baseline on the same seeds, with its 95 %
    interval. Runs over a radio cell are compared by what their accuracy cost: rounds, seconds on the cell's
    clock, and joules of all devices. Where devices live on batteries, a third table says when they died.

    Examples:

    `fedwave compare runs`

    `fedwave compare runs --plot figure.pdf --style paper --width column`

    `fedwave compare runs --by joules --metric accuracy`

    `fedwave compare runs --baseline FedAvg --format latex > table.tex`
    """
    from fedwave.errors import ConfigError, MissingExtraError, did_you_mean
    from fedwave.runs.compare import distinct_runs
    from fedwave.runs.comparison import compare_runs
    from fedwave.runs.listing import read_runs

    if form not in get_args(Format):
        raise ConfigError(f'there is no format "{form}". {did_you_mean(form, get_args(Format))}')
    found = distinct_runs(read_runs(paths))
    comparison = compare_runs(found, baseline=baseline, target=target)
    if form != "table":
        typer.echo(getattr(comparison, f"to_{form}")(), nl=False)
        return
    from fedwave.cli.console import print_tables
    from fedwave.cli.run_tables import lifetime_table, rich_table
    from fedwave.plots.runs import plot_runs

    lives = lifetime_table(found)
    tables = (rich_table(comparison.final), rich_table(comparison.costs))
    console = Console()
    print_tables(console, *tables, *(() if lives is None else (lives,)))
    for note in comparison.notes:
        say(note)
    try:
        picture = plot_runs(
            found,
            plot or Path("comparison.png"),
            by=by,
            metric=metric,
            width=width,
            style=style,
            baseline=baseline,
        )
        typer.echo(f"Picture: {picture}")
    except MissingExtraError as error:
        if plot is not None:
            raise
        say(f"No picture: {error}")


def report(
    paths: list[Path] = RUNS,
    out: Path = typer.Option(Path("report.html"), "--out", "-o", help="Page to write."),
    target: float | None = TARGET,
    baseline: str | None = BASELINE,
) -> None:
    """Make one HTML page of runs: it opens offline, and its charts answer to the mouse.

    What each run came to and what a target cost, beside the baseline on the same seeds, also as CSV; curves
    by rounds and, over a cell, by seconds and joules; who was selected how often; energy by phase and by
    device; the terms of the allocation's objective; settings, what differs between the runs, and the
    commands that make them again.

    Examples:

    `fedwave report runs`

    `fedwave report runs/digits-nufm-seed0 runs/digits-fedavg-seed0 --out page.html`
    """
    from fedwave.pages.page import write_page
    from fedwave.pages.runs_page import runs_page
    from fedwave.runs.compare import distinct_runs
    from fedwave.runs.listing import read_runs

    text = runs_page(distinct_runs(read_runs(paths)), baseline=baseline, target=target)
    typer.echo(f"Report: {write_page(out, text)}")
