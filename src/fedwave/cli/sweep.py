"""``fedwave sweep``, and what other commands with many runs share: one display of how far they are."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from fedwave.cli.console import print_tables, short_time
from fedwave.cli.guard import Interrupted, heed_signals
from fedwave.cli.plain import setting_beginning
from fedwave.cli.presets import preset_beginning
from fedwave.cli.say import say
from fedwave.errors import DivergenceError, import_extra

if TYPE_CHECKING:
    from fedwave.runs.batch import Progress as BatchProgress
    from fedwave.runs.sweep import SweepResult, SweepRun

DATA_DIR = typer.Option(None, "--data-dir", help="Folder that holds datasets; default FEDWAVE_DATA.")
QUIET = typer.Option(False, "--quiet", "-q", help="No progress bar.")
JOBS = typer.Option(
    None, "--jobs", "-j", help="Runs at once; default one a core, each with one thread.", show_default=False
)
SECONDS_BETWEEN_LOOKS = 0.5


def sweep(
    source: str = typer.Argument(
        ...,
        metavar="PRESET or FILE.toml",
        help="A name from `fedwave presets`, or a TOML file.",
        autocompletion=preset_beginning,
    ),
    settings: list[str] = typer.Option(
        [],
        "--set",
        "-s",
        metavar="KEY=A,B,C",
        autocompletion=setting_beginning,
        help="Try these values of a setting, e.g. -s algorithm.meta_lr=0.001,0.01. May be repeated: every "
        "combination is run.",
        show_default=False,
    ),
    seeds: str | None = typer.Option(
        None, "--seeds", metavar="0-9", help="Seeds of every combination: 0-9, or 0,3,7.", show_default=False
    ),
    jobs: int | None = JOBS,
    out: Path = typer.Option(Path("runs"), "--out", "-o", help="Folder for the run folders."),
    data_dir: Path | None = DATA_DIR,
    quiet: bool = QUIET,
) -> None:
    """Train with every combination of some settings and seeds, each in a run folder of its own.

    It can be stopped at any moment: the same command leaves finished runs alone and goes on with the others,
    to the same bits.

    Examples:

    `fedwave sweep digits/nufm -s algorithm.meta_lr=0.001,0.01,0.1 --seeds 0-4`

    `fedwave sweep digits/ural -s cell.method=optimal,threshold --jobs 2`
    """
    import_extra("torch", purpose="Training", extra="learn")
    from fedwave.runs.sweep import parse_seeds, plan_sweep

    run_many(
        lambda: plan_sweep(source, settings, seeds=parse_seeds(seeds) if seeds else (), out=out),
        jobs=jobs,
        data_dir=data_dir,
        quiet=quiet,
    )


def run_many(
    plan: Callable[[], Sequence[SweepRun]], *, jobs: int | None, data_dir: Path | None, quiet: bool
) -> None:
    """Make the planned runs with one display of how far they are, and print what they came to."""
    _report(make_runs(plan(), jobs=jobs, data_dir=data_dir, quiet=quiet))


def make_runs(
    runs: Sequence[SweepRun], *, jobs: int | None, data_dir: Path | None, quiet: bool
) -> SweepResult:
    """Make what is missing of the runs with one display of how far they are."""
    from fedwave.runs.sweep import run_sweep

    try:
        with _display(Console(stderr=True, quiet=quiet), runs) as tell:
            return run_sweep(runs, num_jobs=jobs, data_dir=data_dir, progress=tell)
    except (KeyboardInterrupt, Interrupted):
        raise Interrupted(
            "What is finished is kept, and checkpoints are whole. Go on with the same command."
        ) from None


def require_converged(made: SweepResult) -> None:
    """Raise if a run diverged; the message names the first."""
    if made.diverged:
        folder, why = next(iter(made.diverged.items()))
        raise DivergenceError(
            f"{len(made.diverged)} of {len(made.folders)} runs diverged, the first in {folder}: {why}"
        )


def _report(made: SweepResult) -> None:
    from fedwave.cli.run_tables import rich_table
    from fedwave.runs.compare import read_run
    from fedwave.runs.comparison import compare_runs

    whole = [folder for folder in made.folders if folder not in made.diverged]
    if whole:
        comparison = compare_runs([read_run(folder) for folder in whole])
        print_tables(Console(), rich_table(comparison.final))
        for note in comparison.notes:
            say(note)
    count, folder = len(made.folders), made.folders[0].parent
    say(f"{count} {'run' if count == 1 else 'runs'}, {count - made.num_made} made before: {folder}")
    require_converged(made)


@contextmanager
def _display(
    console: Console, runs: Sequence[SweepRun]
) -> Iterator[Callable[[BatchProgress[SweepRun]], None]]:
    """Show the rounds of all runs as one bar, as the run folders grow; in a log, a line for each run."""
    bar = Progress(
        TextColumn("[bold]{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("rounds"),
        TimeRemainingColumn(),
        console=console,
        disable=not console.is_terminal,
    )
    task = bar.add_task("", total=sum(run.experiment.num_rounds for run in runs))
    ended = threading.Event()

    def look() -> None:
        while not ended.wait(SECONDS_BETWEEN_LOOKS):
            bar.update(task, completed=_rounds_done(runs))

    def tell(now: BatchProgress[SweepRun]) -> None:
        heed_signals()
        done = len(runs) - now.num_runs + now.num_done
        bar.update(task, description=f"{done} of {len(runs)} runs")
        if bar.disable and now.last is not None:
            left = f"about {short_time(now.seconds_left)} left" if now.num_done < now.num_runs else "done"
            console.print(
                f"{done} of {len(runs)} runs, {left}: {now.last.folder}",
                highlight=False,
                soft_wrap=True,
                markup=False,
            )

    watcher = threading.Thread(target=look, daemon=True)
    watcher.start()
    try:
        with bar:
            yield tell
            bar.update(task, completed=_rounds_done(runs))
    finally:
        ended.set()
        watcher.join()


def _rounds_done(runs: Sequence[SweepRun]) -> int:
    return sum(run.rounds_done for run in runs)
