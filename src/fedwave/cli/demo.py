"""``fedwave demo``: what the same accuracy costs five schemes over a street cell."""

from __future__ import annotations

from pathlib import Path

import typer
from rich.console import Console

from fedwave.cli.plain import setting_beginning
from fedwave.cli.sweep import JOBS, QUIET, make_runs, require_converged
from fedwave.errors import import_extra

INTRODUCTION = """\
[bold]fedwave demo[/bold]: 60 devices hold two kinds of handwritten digits each. 30 of them
train a network over a 5G street cell with 10 radio blocks, the others test it.
"""
NEXT = """\
Try next:
  fedwave run digits/ural     one run: its tables, model and curves
  fedwave new my-project      an experiment, a cell and a model to start from
  fedwave cell umi-3.5ghz     the link budget behind these joules and seconds
"""


def demo(
    seeds: str = typer.Option(
        "0-9", "--seeds", metavar="0-9", help="Seeds, each with all five schemes: 0-9, or 0,3,7."
    ),
    settings: list[str] = typer.Option(
        [],
        "--set",
        "-s",
        metavar="KEY=VALUE",
        help="Change a setting of all runs, e.g. `-s cell.radio.power_set=measured-x55`. May be repeated.",
        show_default=False,
        autocompletion=setting_beginning,
    ),
    jobs: int | None = JOBS,
    out: Path = typer.Option(Path("demo"), "--out", "-o", help="Folder for the picture and the run folders."),
    quiet: bool = QUIET,
) -> None:
    """Train with five schemes over a 5G street cell, and draw what the same accuracy cost each of them.

    A minute or two on two cores, without any download. It can be stopped at any moment: the same command goes
    on.

    Examples:

    `fedwave demo`

    `fedwave demo --seeds 0-2 --out first-look`

    `fedwave demo -s cell.radio.power_set=measured-x55 --out measured`
    """
    import_extra("torch", purpose="Training", extra="learn")
    import_extra("matplotlib", purpose="The picture of the demo", extra="learn")
    from fedwave.cli.console import print_tables
    from fedwave.cli.run_tables import cost_table, final_table
    from fedwave.demo.same_accuracy import BY_SEED, SCHEMES, in_words, plan_demo, write_demo
    from fedwave.runs.compare import read_run
    from fedwave.runs.sweep import parse_seeds

    planned = plan_demo(out, seeds=parse_seeds(seeds), changes=settings)
    console = Console()
    num_rounds = planned[0].experiment.num_rounds
    counts = ", ".join(
        f"{count} {name}{'s' * (count > 1)}"
        for name, count in (
            ("scheme", len(SCHEMES)),
            ("seed", len(planned) // len(SCHEMES)),
            ("round", num_rounds),
        )
    )
    console.print(f"{INTRODUCTION}{counts}.\n", highlight=False)
    made = make_runs(planned, jobs=jobs, data_dir=None, quiet=quiet)
    require_converged(made)
    runs = [read_run(folder) for folder in made.folders]
    print_tables(console, final_table(runs), cost_table(runs))
    console.print(f"\n{in_words(runs)}\n", highlight=False, soft_wrap=True)
    picture = write_demo(runs, out)
    console.print(
        f"Picture: {picture}\nBy seed: {out / BY_SEED}\nRun folders: {out}\n",
        highlight=False,
        soft_wrap=True,
        markup=False,
    )
    console.print(NEXT, highlight=False, end="")
