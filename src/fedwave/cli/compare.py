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


def compare(
    paths: list[Path] = typer.Argument(..., metavar="RUN_DIR...", help="Folders of runs, finished or not."),
    plot: Path = typer.Option(Path("comparison.png"), "--plot", help="Picture to write."),
) -> None:
    """Compare runs: a table and a picture. Runs of one name are averaged over their seeds."""
    from fedwave.experiments.compare import read_run

    runs = [read_run(path) for path in paths]
    print_runs(runs, Console())
    typer.echo(f"Picture: {plot_runs(runs, plot)}")


def print_runs(runs: Sequence[FinishedRun], console: Console) -> None:
    """Print one row per setting, with 95 % confidence intervals where there are several seeds."""
    from fedwave.experiments.compare import group_by_name, interval

    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 2, 0, 0))
    for heading in (
        "run",
        "dataset",
        "seeds",
        "rounds",
        "train loss",
        "held-out loss",
        "held-out accuracy",
        "wall time",
    ):
        table.add_column(heading, no_wrap=True, justify="left" if heading in ("run", "dataset") else "right")
    for name, group in group_by_name(runs).items():
        accuracy = interval([100.0 * run.last("heldout_accuracy") for run in group])
        table.add_row(
            name,
            group[0].experiment.data.dataset,
            str(len(group)),
            "/".join(sorted({str(run.num_rounds) for run in group})),
            str(interval([run.last("train_loss") for run in group])),
            str(interval([run.last("heldout_loss") for run in group])),
            f"{accuracy} %" if accuracy.count else "-",
            f"{interval([float(run.curve('wall_time_s').sum()) for run in group]).mean:.1f} s",
        )
    if not console.is_terminal:
        console.width = max(console.width, 140)
    console.print(table)


def plot_runs(runs: Sequence[FinishedRun], path: Path) -> Path:
    """Draw loss and accuracy against rounds."""
    from fedwave.plots.learning_curves import plot_panels
    from fedwave.plots.style import save_figure

    datasets = sorted({run.experiment.data.dataset for run in runs})
    return save_figure(plot_panels(_panels(runs), title=", ".join(datasets)), path)


def _panels(runs: Sequence[FinishedRun]) -> list[Panel]:
    from fedwave.experiments.compare import group_by_name
    from fedwave.plots.learning_curves import Curve, Panel

    def panel(x_name: str, x_label: str, y_name: str, y_label: str, *, is_percentage: bool) -> Panel:
        curves = {
            name: [Curve(run.curve(x_name) + 1, run.curve(y_name)) for run in group]
            for name, group in group_by_name(runs).items()
        }
        return Panel(x_label, y_label, curves, is_percentage)

    return [
        panel("round", "rounds", "train_loss", "training loss after adaptation", is_percentage=False),
        panel("round", "rounds", "heldout_loss", "held-out loss after adaptation", is_percentage=False),
        panel("round", "rounds", "heldout_accuracy", "held-out accuracy [%]", is_percentage=True),
    ]
