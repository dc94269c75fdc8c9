"""``fedwave compare``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from fedwave.experiments.compare import FinishedRun
    from fedwave.plots.learning_curves import Panel


WIDE = 8.0  # costs that differ by more than this are drawn on a logarithmic axis


def compare(
    paths: list[Path] = typer.Argument(..., metavar="RUN_DIR...", help="Folders of runs, finished or not."),
    plot: Path = typer.Option(Path("comparison.png"), "--plot", help="Picture to write."),
    target: float | None = typer.Option(
        None,
        "--target",
        min=0.0,
        max=1.0,
        help="Held-out accuracy whose cost is compared, e.g. 0.6. Default: the highest that all runs reach.",
    ),
) -> None:
    """Compare runs: tables and a picture. Runs of one name are averaged over their seeds.

    Runs over a radio cell are compared by what their accuracy cost: rounds, seconds on the cell's clock, and
    joules of all devices.
    """
    from fedwave.experiments.compare import read_run

    runs = [read_run(path) for path in paths]
    console = Console()
    print_runs(runs, console)
    print_costs(runs, console, target=target)
    typer.echo(f"Picture: {plot_runs(runs, plot)}")


def print_runs(runs: Sequence[FinishedRun], console: Console) -> None:
    """Print one row per setting, with 95 % confidence intervals where there are several seeds."""
    from fedwave.experiments.compare import group_by_name, interval

    over_cell = any(run.has_cell for run in runs)
    table = _table(
        "run",
        "dataset",
        "seeds",
        "rounds",
        "held-out loss",
        "held-out accuracy",
        *(("uploads", "seconds", "joules") if over_cell else ("train loss",)),
        "wall time",
    )
    for name, group in group_by_name(runs).items():
        accuracy = interval([100.0 * run.last("heldout_accuracy") for run in group])
        cells = (
            [
                str(interval([float(run.curve("num_received").sum()) for run in group])),
                str(interval([run.last("cumulative_delay_s") for run in group])),
                str(interval([run.last("cumulative_energy_j") for run in group])),
            ]
            if over_cell
            else [str(interval([run.last("train_loss") for run in group]))]
        )
        table.add_row(
            name,
            group[0].experiment.data.dataset,
            str(len(group)),
            "/".join(sorted({str(run.num_rounds) for run in group})),
            str(interval([run.last("heldout_loss") for run in group])),
            f"{accuracy} %" if accuracy.count else "-",
            *cells,
            f"{interval([float(run.curve('wall_time_s').sum()) for run in group]).mean:.1f} s",
        )
    if not console.is_terminal:
        console.width = max(console.width, 140)
    console.print(table)


def print_costs(runs: Sequence[FinishedRun], console: Console, *, target: float | None = None) -> None:
    """Print what each setting paid for the target accuracy: rounds, and over a cell seconds and joules."""
    from fedwave.experiments.compare import common_target, group_by_name, interval

    wanted = common_target(runs) if target is None else target
    table = _table("run", f"rounds to {wanted:.0%}", "seconds", "joules", "reached by")
    for name, group in group_by_name(runs).items():
        costs = [cost for run in group if (cost := run.cost_of_reaching(wanted)) is not None]
        table.add_row(
            name,
            str(interval([float(cost.rounds) for cost in costs])),
            str(interval([cost.delay_s for cost in costs])),
            str(interval([cost.energy_j for cost in costs])),
            f"{len(costs)} of {len(group)} seed{'s' if len(group) > 1 else ''}",
        )
    console.print()
    console.print(table)


def plot_runs(runs: Sequence[FinishedRun], path: Path) -> Path:
    """Draw loss and accuracy against rounds and, over a cell, against seconds and joules."""
    from fedwave.plots.learning_curves import plot_panels
    from fedwave.plots.style import save_figure

    datasets = ", ".join(sorted({run.experiment.data.dataset for run in runs}))
    over_cell = all(run.has_cell for run in runs)
    return save_figure(plot_panels(_panels(runs, over_cell=over_cell), title=datasets, num_columns=3), path)


def _panels(runs: Sequence[FinishedRun], *, over_cell: bool) -> list[Panel]:
    from fedwave.experiments.compare import group_by_name
    from fedwave.plots.learning_curves import Curve, Panel

    groups = group_by_name(runs)

    def panel(x_name: str, x_label: str, y_name: str, y_label: str) -> Panel:
        offset = 1 if x_name == "round" else 0  # a row holds what is true after its round
        curves = {
            name: [Curve(run.curve(x_name) + offset, run.curve(y_name)) for run in group]
            for name, group in groups.items()
        }
        ends = [curve.x[-1] for group in curves.values() for curve in group]
        is_wide = x_name != "round" and max(ends) > WIDE * min(ends)
        return Panel(x_label, y_label, curves, is_percentage="accuracy" in y_name, has_log_x=is_wide)

    loss, accuracy = "held-out loss after adaptation", "held-out accuracy [%]"
    if not over_cell:
        return [
            panel("round", "rounds", "train_loss", "loss of the computing devices"),
            panel("round", "rounds", "heldout_loss", loss),
            panel("round", "rounds", "heldout_accuracy", accuracy),
        ]
    cells = [run.experiment.cell for run in runs]
    normalised = all(cell is not None and cell.radio.normalised for cell in cells)
    second, joule = ("normalised", "normalised") if normalised else ("s", "J")
    axes = [
        ("round", "rounds"),
        ("cumulative_delay_s", f"time on the cell's clock [{second}]"),
        ("cumulative_energy_j", f"energy of all devices [{joule}]"),
    ]
    return [
        *(panel(x_name, x_label, "heldout_loss", loss) for x_name, x_label in axes),
        *(panel(x_name, x_label, "heldout_accuracy", accuracy) for x_name, x_label in axes),
    ]


def _table(*headings: str) -> Table:
    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 2, 0, 0))
    for heading in headings:
        table.add_column(heading, no_wrap=True, justify="left" if heading in ("run", "dataset") else "right")
    return table
