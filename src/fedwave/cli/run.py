"""``fedwave run`` and ``fedwave resume``."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console

from fedwave.cli.guard import Interrupted, heed_signals
from fedwave.cli.plain import setting_beginning
from fedwave.cli.presets import preset_beginning
from fedwave.cli.say import say
from fedwave.cli.sweep import DATA_DIR, JOBS, QUIET, run_many
from fedwave.errors import ConfigError, DivergenceError, RunError, import_extra

if TYPE_CHECKING:
    from fedwave.runs.run import Observer, RunResult


def run(
    source: str = typer.Argument(
        "digits/nufm",
        metavar="PRESET or FILE.toml",
        help="A name from `fedwave presets`, or a TOML file.",
        autocompletion=preset_beginning,
    ),
    settings: list[str] = typer.Option(
        [],
        "--set",
        "-s",
        metavar="KEY=VALUE",
        autocompletion=setting_beginning,
        help="Change one setting, e.g. `-s selection.num_selected=10`. May be repeated.",
        show_default=False,
    ),
    seed: int | None = typer.Option(None, "--seed", help="The one seed: 3 is short for `-s seed=3`."),
    seeds: str | None = typer.Option(
        None,
        "--seeds",
        metavar="0-9",
        help="Several seeds, a run folder for each: 0-9, or 0,3,7. Finished ones are left alone.",
        show_default=False,
    ),
    jobs: int | None = JOBS,
    engine: str | None = typer.Option(
        None,
        "--engine",
        help="threads or ray, which is short for `-s execution.engine=ray`.",
        show_default=False,
    ),
    address: str | None = typer.Option(
        None,
        "--address",
        metavar="HOST:PORT",
        help="A Ray cluster to compute on, or auto; implies `--engine ray`. Default: one on this machine.",
        show_default=False,
    ),
    out: Path | None = typer.Option(
        None,
        "--out",
        "-o",
        help="Run folder to write; default `runs/NAME-seedN`. With --seeds, the folder for the run folders.",
        show_default=False,
    ),
    data_dir: Path | None = DATA_DIR,
    quiet: bool = QUIET,
) -> None:
    """Train, and leave a run folder with the tables, the model, a summary and a picture.

    You can stop a run at any time (Ctrl-C or kill) and continue it with `fedwave resume`.

    Examples:

    `fedwave run digits/nufm`

    `fedwave run paper/nufm --seed 1 -s data.dataset=cifar-10`

    `fedwave run my.toml -s algorithm.rule=first-order --out runs/first-order`

    `fedwave run digits/nufm --seeds 0-9 --jobs 2`

    `fedwave run scale/synthetic-10k --engine ray --address 10.0.0.1:6379`
    """
    need_torch("Training")
    from fedwave.experiments.load import load_experiment
    from fedwave.runs.run import run_experiment
    from fedwave.runs.sweep import parse_seeds, plan_sweep

    engine = engine or (None if address is None else "ray")
    options = {"seed": seed, "execution.engine": engine, "execution.address": address}
    given = [f"{key}={value}" for key, value in options.items() if value is not None]
    if seeds is not None:
        if seed is not None:
            raise ConfigError(f"--seed and --seeds exclude each other, got {seed} and {seeds}. Keep one.")
        wanted, folder = [*settings, *given], out or Path("runs")
        run_many(
            lambda: plan_sweep(source, fixed=wanted, seeds=parse_seeds(seeds), out=folder),
            jobs=jobs,
            data_dir=data_dir,
            quiet=quiet,
        )
        return
    if jobs is not None:
        raise ConfigError(f"--jobs says how many of --seeds are run at once, got {jobs} without --seeds.")
    experiment = load_experiment(source, [*settings, *given])
    short_name = Path(source).stem if source.endswith(".toml") else source.replace("/", "-")
    folder = out or _free_folder(f"{short_name}-seed{experiment.seed}")
    _watch(
        lambda watching: run_experiment(experiment, folder, data_dir=data_dir, observers=watching),
        folder,
        quiet=quiet,
    )


def resume(
    path: Path = typer.Argument(..., metavar="RUN_DIR", help="Folder of the run that was stopped."),
    from_start: bool = typer.Option(
        False, "--from-start", help="Compute all rounds again, to the same bits: rebuilds lost tables."
    ),
    data_dir: Path | None = DATA_DIR,
    quiet: bool = QUIET,
) -> None:
    """Go on with a run that was stopped or killed. It ends as if it had never been interrupted.

    Examples:

    `fedwave resume runs/digits-nufm-seed0`
    """
    need_torch("Training")
    from fedwave.runs.run import resume_run

    _watch(
        lambda watching: resume_run(path, data_dir=data_dir, from_start=from_start, observers=watching),
        path,
        quiet=quiet,
    )


class _HeedsSignals:
    """Ends a run that was asked to end while it started, where the request was lost."""

    def started(self, *_: Any) -> None:
        heed_signals()

    def round_done(self, _: Any) -> None:
        heed_signals()


def _watch(start: Callable[[list[Observer]], RunResult], folder: Path, *, quiet: bool) -> None:
    """Run with a progress bar, and tell the user how to go on if it stops."""
    from fedwave.runs.observers import ProgressBar

    console = Console(stderr=True, quiet=quiet)
    try:
        with ProgressBar(console) as bar:
            result = start([_HeedsSignals(), bar])
    except (KeyboardInterrupt, Interrupted):
        raise Interrupted(_how_to_go_on(folder)) from None
    except OSError as error:
        reason = error.strerror or str(error)
        raise OSError(error.errno, f"{reason}. {_how_to_go_on(folder)}", error.filename) from error
    except MemoryError:
        raise MemoryError(_how_to_go_on(folder)) from None
    except DivergenceError as error:
        raise DivergenceError(f"{error} Folder: {folder}") from error
    _report(result)


def _how_to_go_on(folder: Path) -> str:
    with suppress(OSError):  # such as a name that is too long
        if not (folder / "config.toml").exists():
            return "No run was begun."
    return f"The last checkpoint is whole. Go on with: fedwave resume {folder}"


def _report(result: RunResult) -> None:
    from fedwave.cli.console import print_tables
    from fedwave.cli.run_tables import final_table
    from fedwave.plots.runs import plot_runs
    from fedwave.runs.compare import read_run

    finished = [read_run(result.path)]
    print_tables(Console(), final_table(finished))
    picture = plot_runs(finished, result.path / "learning_curve.png")
    if result.stopped is not None:
        say(f"Ended after {result.summary['num_rounds']} rounds: {result.stopped}")
    below = result.summary.get("penalties", {}).get("rounds_with_everybody_below", 0)
    if below:
        say(
            f"In {below} of {result.summary['num_rounds']} rounds the theory's penalties put every device "
            "below the turning point, where a smaller gradient counts more."
        )
    say(f"Run folder: {result.path}  (picture: {picture.name})")


def _free_folder(name: str) -> Path:
    """Return runs/NAME, or runs/NAME-2, -3, ... if it is taken."""
    for number in range(1, 10_000):
        path = Path("runs") / (name if number == 1 else f"{name}-{number}")
        if not path.exists():
            return path
    raise RunError(f"runs/{name} and its next 9,999 numbers exist. Choose a folder with --out.")


def need_torch(purpose: str) -> None:
    """Raise the line that says how to install it, where torch is missing."""
    import_extra("torch", purpose=purpose, extra="learn")
