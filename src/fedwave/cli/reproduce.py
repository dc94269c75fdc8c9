"""``fedwave reproduce``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.console import Console
from rich.table import Table

from fedwave.cli.console import short_time
from fedwave.cli.guard import Interrupted, heed_signals
from fedwave.cli.sweep import DATA_DIR, QUIET
from fedwave.errors import import_extra

if TYPE_CHECKING:
    from fedwave.reproduce.reproduction import ItemCost
    from fedwave.reproduce.wanted_runs import WantedRun
    from fedwave.runs.batch import Progress


def reproduce_command(
    items: list[str] = typer.Argument(
        None,
        metavar="ITEM",
        help="table-2, fig-2 to fig-7, readings, beyond, steps, rates, robust or scales; all without one.",
        show_default=False,
    ),
    seeds: int | None = typer.Option(
        None,
        "--seeds",
        help="Seeds of every point; default: 3 to 30, by item and dataset.",
        show_default=False,
    ),
    quick: bool = typer.Option(
        False, "--quick", help="On the embedded digits, small: minutes, no download, no evidence."
    ),
    datasets: list[str] = typer.Option(
        [], "--dataset", help="Run on this dataset only. May be repeated.", show_default=False
    ),
    jobs: int | None = typer.Option(
        None,
        "--jobs",
        "-j",
        help="Runs at once; default one a core, each with one thread.",
        show_default=False,
    ),
    out: Path | None = typer.Option(
        None,
        "--out",
        "-o",
        help="Folder; default `reproduction` or `reproduction-quick`.",
        show_default=False,
    ),
    costs: bool = typer.Option(
        False,
        "--list",
        help="Say what each item costs in runs and minutes, measured here or, without the data, guessed.",
    ),
    report_only: bool = typer.Option(
        False, "--report-only", help="Run nothing: write the report of what is finished."
    ),
    data_dir: Path | None = DATA_DIR,
    quiet: bool = QUIET,
) -> None:
    """Make the paper's tables and figures again, and judge its claims by them.

    Runs what is missing and writes a report. It can be stopped at any moment: the same command goes on, and
    finished runs are shared by all items.

    Examples:

    `fedwave reproduce --quick`

    `fedwave reproduce table-2 --dataset fashion-mnist --seeds 10`
    """
    import_extra("torch", purpose="Training", extra="learn")
    from fedwave.reproduce import reproduction as work

    request = work.ReproductionRequest(
        items=tuple(items or ()),
        is_quick=quick,
        num_seeds=seeds,
        datasets=tuple(datasets),
        num_jobs=jobs,
        data_dir=data_dir,
    )
    folder = out or Path("reproduction-quick" if quick else "reproduction")
    if costs:
        _print_costs(work.item_costs(request, folder), request.jobs)
        return
    console = Console(stderr=True, quiet=quiet)
    try:
        made = work.reproduce(
            request, folder, runs_nothing=report_only, progress=lambda now: _tell(console, now)
        )
    except (KeyboardInterrupt, Interrupted):
        raise Interrupted("Finished runs are kept. Go on with the same command.") from None
    for one in made.claims:
        typer.echo(f"{one.claim.name:3}  {one.verdict:28}  {one.claim.text} ({one.claim.source})")
    typer.echo(f"Report: {made.report}")


def _tell(console: Console, now: Progress[WantedRun]) -> None:
    heed_signals()
    left = (
        f"about {short_time(now.seconds_left)} left" if now.num_done < now.num_runs else "writing the report"
    )
    done = f"  {now.last.command.removeprefix('fedwave run ')}" if now.last is not None else ""
    console.print(
        f"{now.num_done} of {now.num_runs} runs, {left}{done}", highlight=False, soft_wrap=True, markup=False
    )


def _print_costs(found: list[ItemCost], jobs: int) -> None:
    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 2, 0, 0))
    for heading in ("item", "", "runs", "missing", f"minutes with {jobs} at once"):
        table.add_column(heading, justify="left" if heading in ("item", "") else "right")
    for cost in found:
        minutes = f"{'≈ ' if cost.is_guess else ''}{cost.minutes:.1f}"
        table.add_row(cost.item, cost.title, str(cost.num_runs), str(cost.num_missing), minutes)
    total = sum(cost.minutes for cost in found)
    table.add_row("all", "", "", str(sum(cost.num_missing for cost in found)), f"{total:.1f}")
    Console().print(table)
    if any(cost.is_guess for cost in found):
        typer.echo("≈: guessed, as not all datasets are here; see: fedwave datasets")
